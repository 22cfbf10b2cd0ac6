#include "multihead/batch/check_ids.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {

void check_ids(std::span<const int32_t> sequence, int64_t number, const IdLimits& limits) {
  if (sequence.empty() && !limits.may_be_empty) {
    throw UsageError(fmt::format("{} {}: no tokens, not even the end token", limits.what, number));
  }
  if (static_cast<int64_t>(sequence.size()) > limits.longest) {
    throw ShapeError(
        fmt::format("{} {}: expected at most {} tokens, as many as the model reads, got {}; cut it",
                    limits.what, number, limits.longest, sequence.size()));
  }
  for (const int32_t id : sequence) {
    if (id < 0 || id >= limits.vocabulary) {
      throw UsageError(fmt::format("{} {}: expected token ids from 0 to {}, got {}; is it the right model?",
                                   limits.what, number, limits.vocabulary - 1, id));
    }
  }
}

void check_ids(std::span<const std::vector<int32_t>> sequences, const IdLimits& limits) {
  for (size_t i = 0; i < sequences.size(); ++i) check_ids(sequences[i], static_cast<int64_t>(i) + 1, limits);
}

}  // namespace mh
