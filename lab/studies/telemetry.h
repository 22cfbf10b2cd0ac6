// How similar the heads of an encoder are, by measures that stay as they are where the model's outputs do.
#pragma once

#include <optional>

#include "multihead/models/encoder_decoder.h"
#include "multihead/train/training_corpus.h"

namespace mh {

/// Means over all encoder self-attentions, all pairs of their heads and all sentences. A head's values stand in a basis of its
/// own: W_V R with R^T W_O is the same head, so cosines of V_i and V_j, or of A_i V_i and A_j V_j (Li et al. 2018,
/// "disagreement of subspaces" and "of outputs"), say nothing of heads. What a head adds to the layer's output does.
struct HeadTelemetry {
  double positions = 0;   // sum over keys of A_i A_j, a query ("of attended positions", Li et al. 2018)
  double divergence = 0;  // Jensen-Shannon divergence of rows of A_i and A_j, nats
  double entropy = 0;     // of a row over log T
  /// Cosine of A_i V_i W_i^O and A_j V_j W_j^O, what the heads add to the layer's output. None: kept before it was measured.
  std::optional<double> written = {};
  /// The divergence over that of the same rows whose weights are permuted at random, so over that of equally sharp rows that
  /// have nothing to do with each other (heads/measures/similar_heads.h); a mean over queries, not over sentences. None: kept
  /// before it was measured, or no pair of heads.
  std::optional<double> ratio = {};
  /// head_distance(). None: kept before it was measured, or of heads whose scores are not those of W_i^Q and W_i^K alone.
  std::optional<double> distance = {};

  template <class V>
  void visit(V& v) {
    v("positions", positions);
    v("divergence", divergence);
    v("entropy", entropy);
    v("written", written);
    v("ratio", ratio);
    v("distance", distance);
  }
};
/// How far apart the heads of an encoder are by their weights: the mean over its self-attentions and pairs of heads of
/// |M_i - M_j| / sqrt(|M_i|^2 + |M_j|^2) with M_i = W_i^Q W_i^K^T. 0: equal; heads that have nothing to do with each other: 1.
/// None: other scores than those of queries and keys, or one head.
std::optional<double> head_distance(const EncoderDecoder& model);
/// Heads that are so far apart by head_distance() count as apart: the difference is no longer small beside them.
inline constexpr double kApart = 0.1;

/// On the first `sentences` of the corpus.
HeadTelemetry head_telemetry(EncoderDecoder& model, const TrainingCorpus& corpus, size_t sentences = 40);

}  // namespace mh
