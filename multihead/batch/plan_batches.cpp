#include "multihead/batch/plan_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/random.h"

namespace mh {

std::vector<std::vector<int64_t>> plan_batches(std::span<const ExampleSize> examples,
                                               const BatchOptions& options, uint64_t epoch) {
  if (options.max_tokens < 1) {
    throw UsageError(fmt::format("max batch tokens: expected at least 1, got {}", options.max_tokens));
  }
  using Order = BatchOptions::Order;
  const auto tokens_of = [&](int64_t i) { return examples[static_cast<size_t>(i)].tokens; };
  Random random(options.seed, epoch);
  std::vector<int64_t> order(examples.size());
  std::iota(order.begin(), order.end(), 0);
  if (options.order == Order::kShuffled) {
    random.shuffle(order);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return tokens_of(a) < tokens_of(b); });
  } else if (options.order == Order::kLongestFirst) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return tokens_of(a) > tokens_of(b); });
  }

  std::vector<std::vector<int64_t>> batches;
  int64_t tokens = 0, width = 0;  // of the last batch
  for (const int64_t i : order) {
    const ExampleSize& example = examples[static_cast<size_t>(i)];
    if (example.tokens == 0) continue;
    const int64_t wider = std::max(width, example.width);
    const int64_t with = options.count == BatchOptions::Count::kPadded
                             ? wider * static_cast<int64_t>(batches.empty() ? 1 : batches.back().size() + 1)
                             : tokens + example.tokens;
    if (batches.empty() || with > options.max_tokens) {
      batches.emplace_back();
      tokens = width = 0;
    }
    batches.back().push_back(i);
    tokens += example.tokens;
    width = std::max(width, example.width);
  }
  if (options.order == Order::kShuffled) random.shuffle(batches);
  return batches;
}

}  // namespace mh
