// Plain ops, each written as its formula, in float or double. The fused ops are tested against them, and
// they compute what no fused op can. All values are matrices; ops.cpp has each gradient beside its forward.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/kernels/mask.h"

namespace mh::ops {

/// a b: [M, K] x [K, N] -> [M, N].
template <class T>
BasicVar<T> matmul(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b);
/// a b^T: [M, K] x [N, K] -> [M, N].
template <class T>
BasicVar<T> matmul_transposed(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b);
/// a + b, same shapes.
template <class T>
BasicVar<T> add(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b);
/// a * b elementwise, same shapes.
template <class T>
BasicVar<T> multiply(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b);
/// factor * a.
template <class T>
BasicVar<T> scale(BasicTape<T>& tape, BasicVar<T> a, T factor);
/// tanh of each number.
template <class T>
BasicVar<T> tanh(BasicTape<T>& tape, BasicVar<T> a);
/// Each row's softmax over the columns that `mask` allows; masked weights are exactly 0, even where the
/// score is NaN or infinite, and a row that may attend to nothing is all zeros. `first_row`: the number of
/// row 0 in the batch, which a dense mask needs.
template <class T>
BasicVar<T> masked_softmax(BasicTape<T>& tape, BasicVar<T> scores, const Mask& mask, int64_t first_row = 0);
/// The matrices one below the other: [sum of rows, cols].
template <class T>
BasicVar<T> stack_rows(BasicTape<T>& tape, std::span<const BasicVar<T>> parts);
/// The matrices side by side: [rows, sum of cols].
template <class T>
BasicVar<T> stack_columns(BasicTape<T>& tape, std::span<const BasicVar<T>> parts);
/// Rows [begin, end) and columns [left, right) as a new value.
template <class T>
BasicVar<T> block(BasicTape<T>& tape, BasicVar<T> a, int64_t begin, int64_t end, int64_t left, int64_t right);
/// Sum of all numbers: [1, 1].
template <class T>
BasicVar<T> sum(BasicTape<T>& tape, BasicVar<T> a);

}  // namespace mh::ops
