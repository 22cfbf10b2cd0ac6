// Runs a model over a corpus and shows the weights of every attention to observers, batch after batch. Only what the
// observers add up is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/batch/batch_tokens.h"
#include "multihead/models/model.h"
#include "multihead/nn/context.h"

namespace mh {

/// The weights of one attention on a batch of sentences, before dropout; valid while an observer is called.
struct BatchWeights {
  const Model::Attention& attention;
  std::span<const int64_t> sentences;         // [S]: which of the corpus these are
  std::span<const int32_t> query_offsets;     // [S + 1]
  std::span<const int32_t> keys;              // [Nq]: how many keys a query's sequence has
  std::span<const ConstMatrixView> matrices;  // of each head, [Nq, longest keys]
  ConstMatrixView values;   // V of all value heads side by side, [Nk, value_heads * d_value]
  ConstMatrixView outputs;  // [Nq, heads * d_value], before W^O

  int heads() const { return static_cast<int>(matrices.size()); }
  int sequences() const { return static_cast<int>(sentences.size()); }
  /// [Tq, Tk]: the weight of key j for query i, in sequence s and head h.
  ConstMatrixView matrix(int s, int h) const {
    const int32_t begin = query_offsets[static_cast<size_t>(s)],
                  end = query_offsets[static_cast<size_t>(s) + 1];
    return matrices[static_cast<size_t>(h)]
        .rows_between(begin, end)
        .columns_between(0, begin < end ? keys[static_cast<size_t>(begin)] : 0);
  }
};

struct CorpusBlock;

/// Sees weights and keeps of them what it wants.
class CorpusObserver {
 public:
  virtual ~CorpusObserver() = default;
  /// Called before the weights of the block's sentences, which BatchWeights::sentences number from 0 (observe_heads()).
  virtual void begin(const CorpusBlock&) {}
  virtual bool wants_weights(const Model::Attention& attention) const = 0;
  virtual void weights(const BatchWeights& batch) = 0;
};

struct ObserveOptions {
  int64_t max_batch_tokens = 2048;  // source and target tokens of a batch; results do not depend on it
  Sites* sites = nullptr;           // called before the observers, e.g. SiteValues that mute heads
  /// The number of each source in the list that a user gave, for `sites`; -1: it is no text of it. Empty: the sources are the
  /// list.
  std::span<const int64_t> numbers = {};
  /// The types of each source's tokens (batch/batch.h), none for a source whose tokens are all of type 0; empty:
  /// all sources are so.
  std::span<const std::vector<int32_t>> source_types = {};
  std::function<void(int64_t sentences_done)> progress = nullptr;

  template <class V>
  void visit(V& v) {
    visit_batch_tokens(v, max_batch_tokens);
  }
};

/// Sources have their end token, targets do not. The decoder reads the start token and then the target, so
/// that query i of the decoder reads target token i - 1 and predicts token i. Sentences run in their order.
/// With no targets at all only the encoder runs. Throws UsageError on ids outside of the vocabulary,
/// ShapeError on sequences that are too long, naming the sentence, and Error as Model::read() does when states
/// are not finite: then what the observers have is worth nothing.
void observe_corpus(const Model& model, std::span<const std::vector<int32_t>> sources,
                    std::span<const std::vector<int32_t>> targets, std::span<CorpusObserver* const> observers,
                    const ObserveOptions& options = {});

}  // namespace mh
