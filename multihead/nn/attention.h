// THE FORMULA:  Attention(Q, K, V) = softmax(scale * Q K^T + bias) V
// (Vaswani et al. 2017, eq. 1, with scale = 1 / sqrt(d_k) and no bias; a bias is what positions add, as in
// Press et al. 2022)
//
// In a few composed ops that return output and weights, differentiable in both, in float or double. It stores
// a matrix of Tq x Tk for one head of one sequence: what a trace shows, and an oracle of the fused kernel
// (kernels/attention.h). The same in steps for whole batches, for what that one cannot do, is
// autograd/attention_maps.h.
#pragma once

#include <optional>

#include "multihead/autograd/tape.h"
#include "multihead/kernels/mask.h"

namespace mh {

template <class T>
struct AttentionResult {
  BasicVar<T> output;   // [Tq, d_value]
  BasicVar<T> weights;  // [Tq, Tk]; rows sum to 1, or are 0 where nothing may be attended to
  BasicVar<T> scores;   // [Tq, Tk]: Q K^T
  BasicVar<T> scaled;   // [Tq, Tk]: scale * Q K^T
  BasicVar<T> biased;   // [Tq, Tk]: with the bias, of which `weights` is the softmax where the mask allows
};

/// One head of one sequence: q [Tq, d_key], k [Tk, d_key], v [Tk, d_value], bias [Tq, Tk].
template <class T>
AttentionResult<T> attention_formula(BasicTape<T>& tape, BasicVar<T> q, BasicVar<T> k, BasicVar<T> v,
                                     T scale_factor, const Mask& mask,
                                     const std::optional<BasicVar<T>>& bias = std::nullopt);

}  // namespace mh
