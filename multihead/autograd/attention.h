// The fused attention kernel (kernels/attention.h) as an op of the tape.
#pragma once

#include "multihead/autograd/tape.h"
#include "multihead/kernels/attention.h"

namespace mh {

/// softmax(scale * Q K^T) V for every head of every sequence: [Nq, H * d_value].
/// `settings` says all but the matrices: head counts, sizes, offsets, scale, mask, dropout, gate; its spans
/// must outlive the backward pass. `weights` is AttentionOutputs::weights: memory for the weights, or null.
Var attention(Tape& tape, Var q, Var k, Var v, const AttentionInputs& settings, float* weights = nullptr);

}  // namespace mh
