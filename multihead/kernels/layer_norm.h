// LayerNorm(x) = gain * (x - mean) / sqrt(variance + epsilon) + bias    over the columns of each row
// (Ba, Kiros and Hinton 2016).
#pragma once

#include "multihead/base/matrix_view.h"
#include "multihead/kernels/gemm.h"

namespace mh {

inline constexpr float kLayerNormEpsilon = 1e-5f;

/// y = LayerNorm(x); gain and bias [1, cols]; y may be x. inverse_deviation and mean [rows] are kept for the
/// backward pass, or null. On the calling thread: it follows products inside their tasks.
void layer_norm(ConstMatrixView x, ConstMatrixView gain, ConstMatrixView bias, MatrixView y, float* mean,
                float* inverse_deviation);

/// dx = inverse_deviation * (g - average(g) - n * average(g * n)),  g = gain * dy,  n = (x - mean) *
/// inverse_deviation; dgain_block += sum over rows of dy * n, dbias_block += sum over rows of dy: one pair
/// [cols] for each block of rows, merged in order by the caller. dx may be dy. On the calling thread.
void layer_norm_gradient(ConstMatrixView x, ConstMatrixView gain, const float* mean,
                         const float* inverse_deviation, ConstMatrixView dy, MatrixView dx,
                         float* dgain_block, float* dbias_block);

}  // namespace mh
