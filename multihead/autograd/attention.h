// The fused attention kernel (kernels/attention.h) as an op of the tape.
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"
#include "multihead/kernels/attention.h"

namespace mh {

/// The numbers of AttentionInputs::bias that are learned or computed; both are optional.
struct LearnedBias {
  const Parameter* by_distance = nullptr;  // [H, columns], in the place of AttentionBias::by_distance
  Var by_query = {};                       // [Nq, H * (2k + 1)], in the place of AttentionBias::by_query
};

/// softmax(scale * Q K^T + bias) V for every head of every sequence: [Nq, H * d_value].
/// `settings` says all but the matrices: head counts, sizes, offsets, scale, mask, dropout, gate, how
/// distances are clipped; its spans must outlive the backward pass. `weights` is AttentionOutputs::weights:
/// memory for the weights, or null.
Var attention(Tape& tape, Var q, Var k, Var v, const AttentionInputs& settings, const LearnedBias& bias = {},
              float* weights = nullptr);

}  // namespace mh
