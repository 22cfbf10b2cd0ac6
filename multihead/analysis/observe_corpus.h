// Runs a model over a corpus and shows observers every attention's weights, batch after batch: nothing is
// kept but what the observers add up.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/nn/context.h"

namespace mh {

/// An observer that is told which sentences of the corpus the next weights belong to.
class CorpusObserver : public Observer {
 public:
  /// sentences[s] is the number in the corpus of sequence s of each weights() until the next call.
  virtual void begin_batch(std::span<const int64_t> sentences) = 0;
};

struct ObserveOptions {
  int64_t max_batch_tokens = 2048;  // source and target tokens of one batch: speed and memory, not the result
  const Interventions* interventions = nullptr;
  std::function<void(int64_t sentences_done)> progress = nullptr;
};

/// Sources end with the end token; targets are without it: the decoder reads the start token and the target,
/// so that query i of the decoder reads target token i - 1 and predicts token i. Sentences go in their order.
/// No targets at all: only the encoder runs. Throws UsageError on ids, ShapeError on lengths that the
/// model cannot take, naming the sentence.
void observe_corpus(const Model& model, std::span<const std::vector<int32_t>> sources,
                    std::span<const std::vector<int32_t>> targets, std::span<CorpusObserver* const> observers,
                    const ObserveOptions& options = {});

/// Calls body(s, first) for every sequence s of an observation: `first` is its head 0's matrix [Tq, Tk], head
/// h's is head_matrix(first, h).
template <class Body>
void for_each_sequence(const ObservedWeights& observed, Body&& body) {
  const float* at = observed.weights;
  for (size_t s = 0; s + 1 < observed.query_offsets.size(); ++s) {
    const int64_t queries = observed.query_offsets[s + 1] - observed.query_offsets[s];
    const int64_t keys = observed.key_offsets[s + 1] - observed.key_offsets[s];
    body(s, ConstMatrixView(at, queries, keys));
    at += observed.heads * queries * keys;
  }
}
inline ConstMatrixView head_matrix(ConstMatrixView first, int head) {
  return {first.data + head * first.rows * first.cols, first.rows, first.cols};
}

}  // namespace mh
