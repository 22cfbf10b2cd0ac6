// A norm in two steps, where its scale is looked at or changed; in one it is normalise() (affine.h).
#pragma once

#include "multihead/autograd/affine.h"
#include "multihead/autograd/tape.h"

namespace mh {

/// s = 1 / sqrt(variance + epsilon) of each row, of an RMS norm 1 / sqrt(mean of squares + epsilon): [N, d] -> [N, 1].
Var norm_scale(Tape& tape, Var x, const NormParameters& norm);
/// gain * (x - mean) * s + bias, without the mean for an RMS norm: [N, d], [N, 1] -> [N, d].
Var scaled_norm(Tape& tape, Var x, Var scale, const NormParameters& norm);

}  // namespace mh
