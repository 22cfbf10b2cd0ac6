// Differential heads: the output of each head is the difference of the outputs of two softmaxes (Ye et al.
// 2024, "Differential Transformer", eq. 1 to 3).
#pragma once

#include <span>

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"
#include "multihead/kernels/attention.h"

namespace mh {

struct DifferentialParameters {
  const Parameter* vectors = nullptr;  // [4, D]: lambda_q1, lambda_k1, lambda_q2, lambda_k2
  const Parameter* gain = nullptr;     // [1, d_value], of the norm; all heads share it
  float start = 0.8f;                  // lambda_init
};

inline constexpr float kDifferentialEpsilon = 1e-5f;  // added to the mean square of a head's output

/// lambda = exp(lambda_q1 . lambda_k1) - exp(lambda_q2 . lambda_k2) + lambda_init.
float differential_lambda(const DifferentialParameters& parameters);

/// Makes each head of two: x [N, 2 heads * d_value] -> [N, heads * d_value], where head i is (1 -
/// lambda_init) gain * RMSNorm(x_2i - lambda x_2i+1).
Var differential_heads(Tape& tape, Var x, int heads, const DifferentialParameters& parameters);

/// The weights of one head, A_1 - lambda A_2, of the maps of its two softmaxes (attention_maps.h): [1, maps / 2].
Var differential_maps(Tape& tape, Var maps, const AttentionInputs& inputs,
                      const DifferentialParameters& parameters);

}  // namespace mh
