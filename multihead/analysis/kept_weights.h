// KeptWeights: an observer that keeps the weights of a few sentences, to draw or save them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/analysis/observe_corpus.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// The weights of one attention for one sentence.
struct KeptAttention {
  std::string attention;
  int64_t sentence = 0;
  std::vector<Tensor> heads;  // each [Tq, Tk]
};

class KeptWeights : public CorpusObserver {
 public:
  /// attentions: the names of those to keep; empty: all.
  explicit KeptWeights(std::vector<std::string> attentions = {}) : attentions_(std::move(attentions)) {}

  void begin_batch(std::span<const int64_t> sentences) override {
    batch_.assign(sentences.begin(), sentences.end());
  }
  bool wants_weights(std::string_view name) const override;
  void weights(const ObservedWeights& observed) override;

  /// In the order in which the model computed them.
  const std::vector<KeptAttention>& kept() const { return kept_; }
  /// Returns null when it was not kept.
  const KeptAttention* find(std::string_view attention, int64_t sentence = 0) const;

 private:
  std::vector<std::string> attentions_;
  std::vector<int64_t> batch_;
  std::vector<KeptAttention> kept_;
};

}  // namespace mh
