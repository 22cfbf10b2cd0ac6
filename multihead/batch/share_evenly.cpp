#include "multihead/batch/share_evenly.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace mh {

std::vector<std::vector<int64_t>> share_evenly(std::span<const double> costs, size_t parts) {
  std::vector<int64_t> dearest_first(costs.size());
  std::iota(dearest_first.begin(), dearest_first.end(), 0);
  std::stable_sort(dearest_first.begin(), dearest_first.end(), [&](int64_t a, int64_t b) {
    return costs[static_cast<size_t>(a)] > costs[static_cast<size_t>(b)];
  });
  using Load = std::pair<double, size_t>;  // of a worker; of equals the first one is next
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (size_t part = 0; part < parts; ++part) loads.emplace(0.0, part);
  std::vector<std::vector<int64_t>> shares(parts);
  for (const int64_t i : dearest_first) {
    const auto [load, part] = loads.top();
    loads.pop();
    shares[part].push_back(i);
    loads.emplace(load + costs[static_cast<size_t>(i)], part);
  }
  for (auto& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

}  // namespace mh
