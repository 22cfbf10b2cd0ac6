// The fused attention kernel (kernels/attention.h) as an op of the tape.
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"
#include "multihead/kernels/attention.h"

namespace mh {

/// The parts of AttentionInputs beside q, k and v that gradients flow into; all are optional.
struct LearnedInputs {
  const Parameter* by_distance = nullptr;  // [H, columns], takes the place of AttentionBias::by_distance
  Var by_query = {};                       // [Nq, H * columns], takes the place of AttentionBias::by_query
  Var by_key = {};                         // [Nk, H * columns], takes that of by_key
  Var gates = {};                          // [S, H], or [1, H] for all sequences; takes that of gate
};

/// softmax(scale * Q K^T + bias) V for every head of every sequence: [Nq, H * d_value].
/// `settings` holds everything but the matrices: head counts, sizes, offsets, scale, mask, dropout, gate,
/// clipping of distances; where it has keys and values of bfloat16, k and v are null and there are no gradients. Its spans must
/// outlive the backward pass. The output of a query whose scores all overflowed to -infinity is NaN.
Var attention(Tape& tape, Var q, Var k, Var v, const AttentionInputs& settings,
              const LearnedInputs& learned = {});

}  // namespace mh
