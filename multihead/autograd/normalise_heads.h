// Scales each head's part of a row to length 1: query-key normalisation (Henry et al. 2020).
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"

namespace mh {

/// y_i = factor * x_i / |x_i| for every head i of every row; 0 where x_i is 0. x [N, heads * D]; factor [1,
/// 1], or null for 1.
Var normalise_heads(Tape& tape, Var x, int heads, const Parameter* factor = nullptr);

}  // namespace mh
