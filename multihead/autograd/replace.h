// Other numbers in place of a part of a value, or added to it.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/autograd/tape.h"

namespace mh {

/// x with `numbers` in columns [left, left + numbers.cols) of these rows: row i of `numbers` goes to row rows[i], or its only
/// row to all of them. No gradient flows through what was replaced. Each row is named once.
Var replace(Tape& tape, Var x, std::span<const int32_t> rows, int64_t left, ConstMatrixView numbers);

/// x plus `numbers` there, likewise. The gradient flows through the sum; numbers are constants. Where 0 is added no bit changes.
Var add_constants(Tape& tape, Var x, std::span<const int32_t> rows, int64_t left, ConstMatrixView numbers);

/// x with the columns [left, left + columns.cols()) in place of its own, of which no gradient flows.
Var replace_columns(Tape& tape, Var x, int64_t left, Var columns);

}  // namespace mh
