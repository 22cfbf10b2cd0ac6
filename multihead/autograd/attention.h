// The fused attention kernel (kernels/attention.h) as an op of the tape.
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"
#include "multihead/kernels/attention.h"

namespace mh {

/// The parts of AttentionInputs::bias that gradients flow into; both are optional.
struct LearnedBias {
  const Parameter* by_distance = nullptr;  // [H, columns], takes the place of AttentionBias::by_distance
  Var by_query = {};                       // [Nq, H * (2k + 1)], takes the place of AttentionBias::by_query
};

/// softmax(scale * Q K^T + bias) V for every head of every sequence: [Nq, H * d_value].
/// `settings` holds everything but the matrices: head counts, sizes, offsets, scale, mask, dropout, gate,
/// clipping of distances. Its spans must outlive the backward pass. `weights`: memory for
/// AttentionOutputs::weights, or null. The output of a query whose scores all overflowed to -infinity is NaN.
Var attention(Tape& tape, Var q, Var k, Var v, const AttentionInputs& settings, const LearnedBias& bias = {},
              float* weights = nullptr);

}  // namespace mh
