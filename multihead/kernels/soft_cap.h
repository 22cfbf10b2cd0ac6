// The soft cap of scores and logits (Gemma 2, Riviere et al. 2024): y = cap tanh(x / cap), which is nearly x where x is
// small beside the cap, and never beyond the cap.
#pragma once

#include "multihead/base/matrix_view.h"

namespace mh {

/// What a cap can be: a positive number.
bool is_soft_cap(float cap);

/// y = cap tanh(x / cap), number by number; y may be x. On the calling thread. REQUIRES: is_soft_cap(cap).
void soft_cap(float cap, ConstMatrixView x, MatrixView y);
/// dx = dy (1 - (y / cap)^2), by what soft_cap() wrote; dx may be dy or y.
void soft_cap_gradient(float cap, ConstMatrixView y, ConstMatrixView dy, MatrixView dx);
/// dx = dy y / x, where x is 0 dy; likewise by what soft_cap() wrote.
void soft_cap_factor(float cap, ConstMatrixView y, ConstMatrixView dy, MatrixView dx);

}  // namespace mh
