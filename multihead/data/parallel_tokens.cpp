#include "multihead/data/parallel_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"

namespace mh {

namespace {

void check_sides(const ParallelTokens& corpus) {
  if (corpus.source.size() == corpus.target.size()) return;
  throw ShapeError(fmt::format("a corpus has {} sources and {} targets; give one each", corpus.source.size(),
                               corpus.target.size()));
}

}  // namespace

std::vector<ExampleSize> sizes_of(const ParallelTokens& corpus) {
  check_sides(corpus);
  std::vector<ExampleSize> sizes(corpus.size());
  for (size_t i = 0; i < corpus.size(); ++i) {
    const auto source = static_cast<int64_t>(corpus.source[i].size());
    const auto target = static_cast<int64_t>(corpus.target[i].size());
    sizes[i] = {.tokens = target, .width = std::max(source, target + 1)};
  }
  return sizes;
}

std::vector<std::vector<int64_t>> plan_batches(const ParallelTokens& corpus, const BatchOptions& options,
                                               uint64_t epoch) {
  return plan_batches(sizes_of(corpus), options, epoch);
}

std::vector<int64_t> longer_than(const ParallelTokens& corpus, int64_t limit) {
  check_sides(corpus);
  std::vector<int64_t> longer;
  for (size_t i = 0; i < corpus.size(); ++i) {
    const auto length = static_cast<int64_t>(std::max(corpus.source[i].size(), corpus.target[i].size()));
    if (length > limit) longer.push_back(static_cast<int64_t>(i));
  }
  return longer;
}

}  // namespace mh
