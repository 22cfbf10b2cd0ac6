// Gates of heads, for what is not computed by the fused kernel, which has its own (LearnedInputs::gates).
#pragma once

#include <cstdint>
#include <span>

#include "multihead/autograd/tape.h"

namespace mh {

/// Multiplies the columns of each head by its gate: x [N, heads * size] -> the same shape. gates: [S, heads],
/// or [1, heads] for all sequences; sequence s has the rows offsets[s] ... offsets[s + 1] - 1. The offsets must
/// outlive the backward pass.
Var gate_heads(Tape& tape, Var x, Var gates, std::span<const int32_t> offsets);

}  // namespace mh
