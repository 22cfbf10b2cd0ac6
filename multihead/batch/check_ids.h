// Token ids from outside, before a model reads them: one rule and one wording for training, generation and
// analysis.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace mh {

/// What a model can read.
struct IdLimits {
  std::string_view what = "sequence";                     // "source", "target": begins the message
  int64_t longest = std::numeric_limits<int64_t>::max();  // tokens
  int32_t vocabulary = 0;
  bool may_be_empty = true;
};

/// Throws ShapeError on a sequence longer than `longest`, UsageError on an id outside of the vocabulary and
/// on a sequence of no tokens that may not be empty. `number`, from 1, is in the message.
void check_ids(std::span<const int32_t> sequence, int64_t number, const IdLimits& limits);
/// Each of them, numbered from 1.
void check_ids(std::span<const std::vector<int32_t>> sequences, const IdLimits& limits);

}  // namespace mh
