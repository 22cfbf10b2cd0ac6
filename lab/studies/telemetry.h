// How similar the heads of an encoder are, by the measures people have used.
#pragma once

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
  /// matrix (of `output`). It hardly moves near h, and falls again when cosines go below 0.
  double effective = 0;
  /// How far apart two heads' outputs are: 1 - cosine, half the squared distance of the outputs scaled to length 1,
  /// the mean over pairs. 0: equal heads; 1: at right angles; h / (h - 1), its largest: all cosines -1 / (h - 1).
  /// It falls by as much as the cosine rises, so it neither saturates nor turns. It orders models as Li et al. 2018's
  /// "disagreement of outputs" does, -sum_ij cosine / h^2 = (1 - 1/h) distance - 1.
  double distance() const { return 1 - output; }

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
