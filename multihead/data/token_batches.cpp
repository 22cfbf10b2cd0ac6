#include "multihead/data/token_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/random.h"

namespace mh {

void TokenSequences::add(std::span<const int32_t> tokens, int64_t sentence_id) {
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  ragged.add(static_cast<int32_t>(tokens.size()));
  sentence_ids.push_back(sentence_id);
}

void TokenSequences::clear() {
  ids.clear();
  ragged.clear();
  sentence_ids.clear();
}

std::vector<std::vector<int32_t>> plan_batches(const ParallelTokens& corpus, const BatchOptions& options,
                                               uint64_t epoch) {
  MH_ASSERT(corpus.source.size() == corpus.target.size());
  if (options.max_tokens < 1) {
    throw UsageError(fmt::format("tokens a batch: expected at least 1, found {}", options.max_tokens));
  }
  Random random(options.seed, epoch);
  std::vector<int32_t> order(corpus.size());
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  const auto target_length = [&](int32_t i) { return corpus.target[static_cast<size_t>(i)].size(); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return target_length(a) < target_length(b); });

  std::vector<std::vector<int32_t>> batches;
  std::vector<int32_t> batch;
  int64_t longest = 0, total = 0;
  for (const int32_t i : order) {
    const auto target = static_cast<int64_t>(target_length(i));
    const auto source = static_cast<int64_t>(corpus.source[static_cast<size_t>(i)].size());
    const int64_t with = std::max({longest, source, target + 1});
    const int64_t tokens = options.count == BatchOptions::Count::padded
                               ? with * static_cast<int64_t>(batch.size() + 1)
                               : total + target;
    if (!batch.empty() && tokens > options.max_tokens) {
      batches.push_back(std::move(batch));
      batch.clear();
      longest = total = 0;
    }
    batch.push_back(i);
    longest = std::max({longest, source, target + 1});
    total += target;
  }
  if (!batch.empty()) batches.push_back(std::move(batch));
  random.shuffle(batches);
  return batches;
}

std::vector<int32_t> longer_than(const ParallelTokens& corpus, int64_t limit) {
  std::vector<int32_t> longer;
  for (size_t i = 0; i < corpus.size(); ++i) {
    const auto length = static_cast<int64_t>(std::max(corpus.source[i].size(), corpus.target[i].size()));
    if (length > limit) longer.push_back(static_cast<int32_t>(i));
  }
  return longer;
}

}  // namespace mh
