// Attention in steps (scores, softmax, dropout, weighted values), each an op that stores its Tq x Tk
// matrices. This composed path computes what the fused kernel (attention.h) cannot: talking heads mix the
// matrices before and after the softmax, and a regulariser may need gradients through the weights. It is
// slower, and its memory grows with the square of the length. Gates come after it (gate_heads.h).
//
// All Tq x Tk matrices (maps) of all sequences and heads are one row of numbers, laid out as
// AttentionOutputs::weights. `inputs` gives everything but the matrices: its q, k, v and
// AttentionBias::elements are ignored, and its spans must outlive the backward pass. For gradients `inputs`
// must have no key_rows. Where a function is given some heads of `inputs`, the maps are those of these heads.
#pragma once

#include "multihead/autograd/attention.h"

namespace mh {

/// Heads begin ... end - 1 of some inputs; by default all of them.
struct HeadRange {
  int begin = 0;
  int end = -1;  // -1: AttentionInputs::heads
};

/// Keys or values that a cache has as bfloat16, as float32: this path reads no others.
Var widened(Tape& tape, ConstHalfView halves);

/// scale * q k^T, softly capped where `inputs` say so, + bias: [1, maps].
Var attention_scores(Tape& tape, Var q, Var k, const AttentionInputs& inputs, const LearnedInputs& bias,
                     HeadRange heads = {});
/// Each row's softmax over the keys that the mask allows; exactly 0 for the others.
Var softmax_maps(Tape& tape, Var maps, const AttentionInputs& inputs, HeadRange heads = {});
/// The same, where nobody reads the scores afterwards. REQUIRES: no gradient flows through them.
Var softmax_maps_in_place(Tape& tape, Var maps, const AttentionInputs& inputs, HeadRange heads = {});
/// y_g = sum over h of mixing(h, g) x_h, for the maps of every sequence; mixing [heads, heads].
Var mix_maps(Tape& tape, Var maps, const Parameter& mixing, const AttentionInputs& inputs);
/// Dropout of `inputs`; it drops the same weights as the fused kernel.
Var drop_maps(Tape& tape, Var maps, const AttentionInputs& inputs, HeadRange heads = {});
/// maps_h V_h side by side: [Nq, heads * d_value].
Var weigh_values(Tape& tape, Var maps, Var v, const AttentionInputs& inputs, HeadRange heads = {});

}  // namespace mh
