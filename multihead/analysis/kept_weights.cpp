#include "multihead/analysis/kept_weights.h"

#include <algorithm>

namespace mh {

bool KeptWeights::wants_weights(std::string_view name) const {
  return attentions_.empty() || std::find(attentions_.begin(), attentions_.end(), name) != attentions_.end();
}

void KeptWeights::weights(const ObservedWeights& observed) {
  for_each_sequence(observed, [&](size_t s, ConstMatrixView first) {
    KeptAttention& kept = kept_.emplace_back();
    kept.attention = observed.name;
    kept.sentence = batch_.empty() ? static_cast<int64_t>(s) : batch_[s];
    for (int h = 0; h < observed.heads; ++h) {
      Tensor& head = kept.heads.emplace_back(first.rows, first.cols);
      const ConstMatrixView from = head_matrix(first, h);
      std::copy_n(from.data, from.size(), head.data());
    }
  });
}

const KeptAttention* KeptWeights::find(std::string_view attention, int64_t sentence) const {
  for (const KeptAttention& kept : kept_) {
    if (kept.attention == attention && kept.sentence == sentence) return &kept;
  }
  return nullptr;
}

}  // namespace mh
