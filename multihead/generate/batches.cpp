#include "multihead/generate/batches.h"

#include <algorithm>
#include <numeric>

#include "multihead/base/error.h"

namespace mh {

std::vector<std::vector<int64_t>> batches_by_length(std::span<const int64_t> lengths, int64_t max_tokens) {
  MH_ASSERT(max_tokens >= 1);
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](int64_t i) { return lengths[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return length(a) > length(b); });

  std::vector<std::vector<int64_t>> batches;
  int64_t tokens = 0;
  for (const int64_t i : order) {
    if (length(i) == 0) break;
    if (batches.empty() || tokens + length(i) > max_tokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += length(i);
  }
  return batches;
}

}  // namespace mh
