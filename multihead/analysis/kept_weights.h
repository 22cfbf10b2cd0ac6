// Keeps the weights of a few sentences as they are, to draw or save them.
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

/// One attention's weights of one sentence.
struct KeptAttention {
  std::string attention;
  int64_t sentence = 0;
  std::vector<Tensor> heads;  // each [Tq, Tk]
};

class KeptWeights : public CorpusObserver {
 public:
  /// Attentions to keep; none: all.
  explicit KeptWeights(std::vector<std::string> attentions = {}) : attentions_(std::move(attentions)) {}

  void begin_batch(std::span<const int64_t> sentences) override {
    batch_.assign(sentences.begin(), sentences.end());
  }
  bool wants_weights(std::string_view name) const override;
  void weights(const ObservedWeights& observed) override;

  /// In the order in which the model computed them.
  const std::vector<KeptAttention>& kept() const { return kept_; }
  /// nullptr when it was not kept.
  const KeptAttention* find(std::string_view attention, int64_t sentence = 0) const;

 private:
  std::vector<std::string> attentions_;
  std::vector<int64_t> batch_;
  std::vector<KeptAttention> kept_;
};

}  // namespace mh
