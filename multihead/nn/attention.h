// THE FORMULA:  Attention(Q, K, V) = softmax(scale * Q K^T + bias) V
// (Vaswani et al. 2017, eq. 1, with scale = 1 / sqrt(d_k) and no bias; positions may add a bias, e.g. ALiBi's,
// Press et al. 2022). With a soft cap c the scaled scores s become c tanh(s / c) before the bias (Gemma 2, Riviere et
// al. 2024).
//
// Written as a few plain ops, for one head of one sequence, in float or double. It returns output and
// weights, and gradients flow through both. It stores matrices of Tq x Tk: a trace shows them, and the
// fused kernel (kernels/attention.h) is tested against them. autograd/attention_maps.h does the same steps
// for whole batches.
#pragma once

#include <optional>

#include "multihead/autograd/tape.h"
#include "multihead/kernels/mask.h"

namespace mh {

template <class T>
struct AttentionResult {
  BasicVar<T> output;   // [Tq, d_value]
  BasicVar<T> weights;  // [Tq, Tk]; rows sum to 1, or are 0 for a query that may see no key
  BasicVar<T> scores;   // [Tq, Tk]: Q K^T
  BasicVar<T> scaled;   // [Tq, Tk]: scale * Q K^T
  BasicVar<T> capped;   // [Tq, Tk]: soft_cap tanh(scaled / soft_cap), or `scaled` without a cap
  BasicVar<T> biased;  // [Tq, Tk]: capped + bias; `weights` is its softmax over the keys that the mask allows
};

/// Computes one head of one sequence: q [Tq, d_key], k [Tk, d_key], v [Tk, d_value], bias [Tq, Tk].
template <class T>
AttentionResult<T> attention_formula(BasicTape<T>& tape, BasicVar<T> q, BasicVar<T> k, BasicVar<T> v,
                                     T scale_factor, const Mask& mask,
                                     const std::optional<BasicVar<T>>& bias = std::nullopt,
                                     std::optional<T> soft_cap = std::nullopt);

}  // namespace mh
