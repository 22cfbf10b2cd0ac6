// ParallelTokens: a tokenised parallel corpus, and the sizes of its pairs for planning batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "multihead/batch/plan_batches.h"

namespace mh {

/// Each sentence ends with its end token; line i translates line i. The functions below throw ShapeError
/// unless both sides have equally many.
struct ParallelTokens {
  std::vector<std::vector<int32_t>> source, target;
  size_t size() const { return source.size(); }
};

/// Returns the size of each pair: `tokens` counts the target with its end token; `width` is the length of
/// the longer side, the target with its start token.
std::vector<ExampleSize> sizes_of(const ParallelTokens& corpus);

/// Returns the batches of one epoch, each a list of pair numbers.
std::vector<std::vector<int64_t>> plan_batches(const ParallelTokens& corpus, const BatchOptions& options,
                                               uint64_t epoch = 0);

/// Returns the pairs with more than `limit` tokens (end token included) on either side, to report and leave
/// out.
std::vector<int64_t> longer_than(const ParallelTokens& corpus, int64_t limit);

}  // namespace mh
