// Numbers in place of a part of a value.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/autograd/tape.h"

namespace mh {

/// x with `numbers` in columns [left, left + numbers.cols) of these rows: row i of `numbers` goes to row rows[i], or its only
/// row to all of them. No gradient flows through what was replaced. Each row is named once.
Var replace(Tape& tape, Var x, std::span<const int32_t> rows, int64_t left, ConstMatrixView numbers);

}  // namespace mh
