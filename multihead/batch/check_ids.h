// Checks token ids from outside before a model reads them. Training, generation and analysis share this
// check and its messages.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace mh {

/// The limits of what a model can read.
struct IdLimits {
  std::string_view what = "sequence";                     // "source", "target": begins the message
  int64_t longest = std::numeric_limits<int64_t>::max();  // tokens
  int32_t vocabulary = 0;
  bool may_be_empty = true;
};

/// Throws ShapeError on a sequence longer than `longest`, UsageError on an id outside of the vocabulary and
/// on an empty sequence unless may_be_empty. `number`, from 1, is in the message.
void check_ids(std::span<const int32_t> sequence, int64_t number, const IdLimits& limits);
/// Checks each of the sequences, numbered from 1.
void check_ids(std::span<const std::vector<int32_t>> sequences, const IdLimits& limits);

}  // namespace mh
