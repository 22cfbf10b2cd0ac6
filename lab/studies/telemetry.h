// How similar the heads of an encoder are, by the measures people have used.
#pragma once

#include <array>

#include "multihead/models/encoder_decoder.h"
#include "multihead/train/training_corpus.h"

namespace mh {

/// Means over all encoder self-attentions, all pairs of their heads and all sentences.
struct HeadTelemetry {
  double subspace = 0;    // cosine of V_i and V_j (Li et al. 2018, "disagreement of subspaces")
  double positions = 0;   // sum over keys of A_i A_j, a query ("of attended positions")
  double output = 0;      // cosine of A_i V_i and A_j V_j ("of outputs")
  double divergence = 0;  // Jensen-Shannon divergence of rows of A_i and A_j, nats
  double entropy = 0;     // of a row over log T
  /// The effective number of heads: exp of the entropy of the normalised eigenvalues of the heads' cosine
  /// matrix.
  double effective = 0;

  template <class V>
  void visit(V& v) {
    v("subspace", subspace);
    v("positions", positions);
    v("output", output);
    v("divergence", divergence);
    v("entropy", entropy);
    v("effective", effective);
  }
};
/// On the first `sentences` of the corpus.
HeadTelemetry head_telemetry(EncoderDecoder& model, const TrainingCorpus& corpus, size_t sentences = 40);

}  // namespace mh
