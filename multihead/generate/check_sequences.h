#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mh {

/// Throws ShapeError on a sequence longer than max_positions, UsageError on an id outside the vocabulary;
/// `what` ("source") and the sequence's number, from 1, are in the message.
void check_sequences(std::span<const std::vector<int32_t>> sequences, std::string_view what,
                     int32_t max_positions, int32_t vocabulary);

}  // namespace mh
