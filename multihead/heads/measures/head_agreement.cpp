#include "multihead/heads/measures/head_agreement.h"

#include <algorithm>
#include <span>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"

namespace mh {

void HeadAgreement::add(int layer, int heads, std::vector<int32_t> chosen) {
  if (batch_.contains(layer)) finish();
  batch_[layer] = {.heads = heads, .chosen = std::move(chosen)};
}

void HeadAgreement::finish() {
  if (batch_.empty()) return;
  std::vector<std::pair<int, int>> heads;
  std::vector<std::span<const int32_t>> chosen;
  for (const auto& [number, layer] : batch_) {
    const size_t queries = layer.chosen.size() / static_cast<size_t>(layer.heads);
    for (int h = 0; h < layer.heads; ++h) {
      heads.emplace_back(number, h);
      chosen.push_back(std::span(layer.chosen).subspan(static_cast<size_t>(h) * queries, queries));
    }
  }
  if (heads_.empty()) {
    heads_ = heads;
    same_.assign(heads.size() * heads.size(), 0);
  }
  MH_ASSERT(heads_ == heads);
  parallel_for(std::ssize(heads), [&](int64_t head) {
    const auto g = static_cast<size_t>(head);
    for (size_t h = g + 1; h < heads.size(); ++h) {
      int32_t same = 0;
      for (size_t i = 0; i < chosen[g].size(); ++i)
        same += static_cast<int32_t>(chosen[g][i] == chosen[h][i]) & static_cast<int32_t>(chosen[g][i] >= 0);
      same_[g * heads.size() + h] += same;
    }
  });
  batch_.clear();
}

std::vector<HeadAgreement::Same> HeadAgreement::of(int layer, int head) const {
  const auto found = std::find(heads_.begin(), heads_.end(), std::pair(layer, head));
  MH_ASSERT(found != heads_.end() && batch_.empty());
  const auto g = static_cast<size_t>(found - heads_.begin());
  std::vector<Same> all;
  for (size_t h = 0; h < heads_.size(); ++h) {
    if (h == g) continue;
    all.push_back({.layer = heads_[h].first,
                   .head = heads_[h].second,
                   .queries = same_[std::min(g, h) * heads_.size() + std::max(g, h)]});
  }
  return all;
}

}  // namespace mh
