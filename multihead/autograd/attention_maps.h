// The composed path of attention: every matrix of Tq x Tk is kept, so that something can be done with it
// before and after the softmax, and so that weights are a value that gradients flow through. For what the
// fused kernel (attention.h) cannot do; slower, and its memory grows with the square of the length.
//
// The maps of all sequences and heads are one row of numbers, laid out as AttentionOutputs::weights. What
// `inputs` says of matrices and of AttentionBias::elements is not looked at; its spans must outlive the
// backward pass. Gradients need keys without key_rows.
#pragma once

#include "multihead/autograd/attention.h"

namespace mh {

/// scale * q k^T + bias: [1, maps] for the inputs' heads.
Var attention_scores(Tape& tape, Var q, Var k, const AttentionInputs& inputs, const LearnedBias& bias);
/// Each row's softmax over the keys that the mask allows; exactly 0 for the others.
Var softmax_maps(Tape& tape, Var maps, const AttentionInputs& inputs);
/// y_g = sum over h of mixing(h, g) x_h, for the maps of every sequence; mixing [heads, heads].
Var mix_maps(Tape& tape, Var maps, const Parameter& mixing, const AttentionInputs& inputs);
/// The inputs' dropout, with the same decisions as in the kernel.
Var drop_maps(Tape& tape, Var maps, const AttentionInputs& inputs);
/// gate_h * maps_h V_h side by side: [Nq, heads * d_value].
Var weigh_values(Tape& tape, Var maps, Var v, const AttentionInputs& inputs);

}  // namespace mh
