// Numbers that a model is judged by, as plain ops (ops.h) in float or double: from logits or vectors to scalars of which
// gradients are wanted. scores.cpp has each gradient beside its forward.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/autograd/tape.h"

namespace mh::ops {

/// The numbers x(rows[i], columns[i]), one below the other: [n, 1]. Throws ShapeError on a place that is not there and where
/// there are not as many rows as columns.
template <class T>
BasicVar<T> pick(BasicTape<T>& tape, BasicVar<T> x, std::span<const int32_t> rows,
                 std::span<const int32_t> columns);
/// log softmax of each row, in natural logarithms: x_j - log sum_k exp(x_k): [N, V] -> [N, V].
template <class T>
BasicVar<T> log_softmax(BasicTape<T>& tape, BasicVar<T> x);
/// The cosine of row i of a and row i of b: [n, d], [n, d] -> [n, 1]; 0, without a gradient, where one of them is zero.
template <class T>
BasicVar<T> cosines(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b);

}  // namespace mh::ops
