// Runs a model over a corpus and passes the weights of every attention to observers, batch after batch.
// Only what the observers add up is kept.
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
  /// Called before each batch: sequence s of the weights() that follow is sentence sentences[s] of the
  /// corpus.
  virtual void begin_batch(std::span<const int64_t> sentences) = 0;
};

struct ObserveOptions {
  int64_t max_batch_tokens = 2048;  // source and target tokens of a batch; results do not depend on it
  const Interventions* interventions = nullptr;
  /// The types of each source's tokens (batch/batch.h), none for a source whose tokens are all of type 0; empty:
  /// all sources are so.
  std::span<const std::vector<int32_t>> source_types = {};
  std::function<void(int64_t sentences_done)> progress = nullptr;
};

/// Sources have their end token, targets do not. The decoder reads the start token and then the target, so
/// that query i of the decoder reads target token i - 1 and predicts token i. Sentences run in their order.
/// With no targets at all only the encoder runs. Throws UsageError on ids outside of the vocabulary,
/// ShapeError on sequences that are too long, naming the sentence, and Error as Model::read() does when states
/// are not finite: then what the observers have is worth nothing.
void observe_corpus(const Model& model, std::span<const std::vector<int32_t>> sources,
                    std::span<const std::vector<int32_t>> targets, std::span<CorpusObserver* const> observers,
                    const ObserveOptions& options = {});

/// Calls body(s, first) for every sequence s of an observation. `first` is the matrix [Tq, Tk] of head 0;
/// that of head h is head_matrix(first, h).
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
