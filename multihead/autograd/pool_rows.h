// From rows of sequences to one row for each sequence. Sequence s has the rows offsets[s] ... offsets[s + 1] - 1.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/autograd/tape.h"

namespace mh {

/// The sum of weights[r] * x_r over the rows r of each sequence, in double: [N, d] -> [S, d]; zeros for a sequence
/// without rows. Rows of weight 0 are not read. The spans are copied.
Var weigh_rows(Tape& tape, Var x, std::span<const int32_t> offsets, std::span<const double> weights);
/// The rows of x with these numbers, which rise: [N, d] -> [rows, d].
Var take_rows(Tape& tape, Var x, std::span<const int32_t> rows);
/// The largest number of each column, whose row (ties: the first) gets the gradient: [N, d] -> [S, d]; zeros for a
/// sequence without rows.
Var max_rows(Tape& tape, Var x, std::span<const int32_t> offsets);
/// y = x with each row divided by its length, sqrt(sum x^2), or by 1e-12 where that is more, as torch's normalize has
/// it; y may be x.
void divide_by_lengths(ConstMatrixView x, MatrixView y);
/// The same as an op.
Var unit_rows(Tape& tape, Var x);

}  // namespace mh
