// Norms over the columns of each row:
//   LayerNorm(x) = gain * (x - mean) / sqrt(variance + epsilon) + bias     (Ba, Kiros and Hinton 2016)
//   RMSNorm(x)   = gain * x / sqrt(mean of x^2 + epsilon)                  (Zhang and Sennrich 2019)
#pragma once

#include "multihead/base/matrix_view.h"

namespace mh {

enum class NormKind { kLayer, kRms };

struct Norm {
  NormKind kind = NormKind::kLayer;
  float epsilon = 1e-5f;
  ConstMatrixView gain;       // [1, cols]
  ConstMatrixView bias = {};  // [1, cols]; of kLayer only, and empty for none
  bool held = false;          // for gradients: inverse_deviation counts as a constant
};

/// y = Norm(x); y may be x. mean (0 for kRms) and inverse_deviation [rows] are kept for the backward pass, or
/// null. On the calling thread: tasks of products call it for their rows.
void normalise(const Norm& norm, ConstMatrixView x, MatrixView y, float* mean, float* inverse_deviation);

/// dx = inverse_deviation * (g - average(g) - n * average(g * n)),  g = gain * dy,  n = (x - mean) *
/// inverse_deviation, without average(g) for kRms and without the last term where the norm is held; dgain_block += sum over rows of dy * n, dbias_block (not
/// for kRms) += sum over rows of dy: one pair [cols] for each block of rows, merged in order by the caller.
/// dx may be dy. On the calling thread.
void normalise_gradient(const Norm& norm, ConstMatrixView x, const float* mean,
                        const float* inverse_deviation, ConstMatrixView dy, MatrixView dx, float* dgain_block,
                        float* dbias_block);

}  // namespace mh
