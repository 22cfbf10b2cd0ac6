// PackedWeights: the weights of all heads of one kind on a batch, beside the same weights in random order, as they are compared
// with each other (similar_heads.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/kernels/mask.h"
#include "multihead/models/model.h"
#include "multihead/nn/attention_place.h"

namespace mh {

/// Folds of sentences, over which intervals are made (base/interval.h).
inline constexpr size_t kSimilarityFolds = 20;

/// An attention whose heads are compared with those of other attentions of its kind.
struct ComparedAttention {
  std::string name = {};
  AttentionPlace place = {};
  int heads = 0;
  int key_heads = 0;         // a divisor of heads; heads / key_heads neighbours share their keys
  Mask mask = Mask::none();  // none or a band
};
/// Of a model, in its order.
std::vector<ComparedAttention> compared_attentions(const Model& model);

/// Those of each kind, in the order of layers.
std::map<AttentionKind, std::vector<ComparedAttention>> by_kind(
    const std::vector<ComparedAttention>& attentions);

/// The seed of the numbers that permute the weights of a head on a sentence; those of query i are Random(seed, i).
uint64_t permutation_seed(uint64_t seed, int64_t sentence, AttentionPlace place, int head);

/// Which queries of a sentence are compared: every query, or where that takes more than `most_bytes` every second, third, ...
int64_t compared_queries_step(int64_t queries, int64_t keys, int heads, int64_t most_bytes);

/// The weights of a head on a sentence lie end to end: for each compared query those of the keys that a query may see in any
/// of the attentions, then zeros up to a whole number of vectors. The other weights are 0.
class PackedWeights {
 public:
  struct Sentence {
    int64_t number = 0;            // in the corpus
    int64_t begin = 0, cells = 0;  // of a head
    int64_t queries = 0;           // compared
  };

  /// attentions: of one kind, in the order of layers.
  PackedWeights(std::vector<ComparedAttention> attentions, uint64_t seed, int64_t most_bytes);

  /// Takes the weights of an attention; first: the corpus's number of the block's first sentence. Returns whether those of all
  /// attentions are there; the next call then begins another batch.
  bool add(const BatchWeights& batch, int64_t first);

  const std::vector<ComparedAttention>& attentions() const { return attentions_; }
  /// The number of an attention's first head among all; with attentions().size() all heads.
  int first_head(size_t attention) const { return first_head_[attention]; }
  int heads() const { return first_head_.back(); }

  const std::vector<Sentence>& sentences() const { return sentences_; }
  /// [cells] of sentence s.
  const float* weights(int head, const Sentence& s) const {
    return weights_.data() + head * cells_ + s.begin;
  }
  const float* permuted(int head, const Sentence& s) const {
    return permuted_.data() + head * cells_ + s.begin;
  }

 private:
  struct Row {
    int64_t query = 0, begin = 0, end = 0;  // keys
    int64_t cell = 0;                       // of the first
  };
  void lay_out(const BatchWeights& batch, int64_t first);

  std::vector<ComparedAttention> attentions_;
  std::vector<int> first_head_;
  uint64_t seed_;
  int64_t most_bytes_;
  size_t arrived_ = 0;  // attentions
  std::vector<Sentence> sentences_;
  std::vector<std::vector<Row>> rows_;  // of each sentence
  int64_t cells_ = 0;
  std::vector<float> weights_, permuted_;  // [heads, cells]
};

}  // namespace mh
