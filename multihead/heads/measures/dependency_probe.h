// The attention-only probe of Clark et al. 2019, section 5: how much of a tree the heads have together. With a_k(i, j) the weight of
// head k between words (merge_to_words), word i is the head of word j with probability
//
//   p(i | j) proportional to exp(sum_k w_k a_k(j, i) + u_k a_k(i, j)),
//
// over the other words of the sentence. w and u, two numbers a head, are learned on one half of the sentences by Adam. On the other
// half the maximum spanning tree under log p, with the tree's own root, is compared with the tree: the share of the other words
// whose head is right (UAS).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/data/tree_bank.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/nn/attention_place.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct GoldTrees;

class DependencyProbe : public CorpusObserver {
 public:
  struct Head {
    std::string name;
    double reads = 0, read = 0;  // w and u
  };
  /// attentions: those of one kind, in the order of a forward pass, all of which see the words of the trees.
  explicit DependencyProbe(std::vector<Model::Attention> attentions);

  /// Whether the sentences that come teach it, or are counted.
  enum class Use { kLearn, kCount };
  void use(Use use) { use_ = use; }

  void begin(const CorpusBlock& block) override;
  bool wants_weights(const Model::Attention& attention) const override;
  void weights(const BatchWeights& batch) override;

  /// Words other than roots, and those of them whose head was right.
  int64_t words() const { return words_; }
  int64_t right() const { return right_; }
  std::vector<Head> heads() const;

 private:
  /// Of one sentence: [2 * heads][size * size], a_k(j, i) and a_k(i, j) at i * size + j.
  struct Features {
    const std::vector<Word>* tree = nullptr;
    int64_t size = 0;  // words that the model reads
    std::vector<std::vector<float>> maps;
  };
  BasicTensor<double> log_probabilities(const Features& sentence) const;
  void learn();
  void count();

  std::vector<Model::Attention> attentions_;
  size_t heads_ = 0;
  Use use_ = Use::kLearn;
  const GoldTrees* gold_ = nullptr;
  std::vector<Features> batch_;
  std::vector<std::string> names_;
  std::vector<double> weights_, mean_, square_;  // of Adam
  int64_t updates_ = 0, words_ = 0, right_ = 0;
};

}  // namespace mh
