// Attention on memory of your own: softmax(scale * Q K^T) V for every head of every sequence, forward and backward,
// exact and fused (no Tq x Tk matrix is stored). Heads lie side by side in a row and sequences end to end, or both
// by strides, as in torch's [B, H, T, D].
//
//   mh::AttentionInputs in{.q = {q, Nq, H * D}, .k = {k, Nk, H * D}, .v = {v, Nk, H * D}, .heads = H, .key_heads = H,
//                          .value_heads = H, .d_key = D, .d_value = D, .query_offsets = offsets,
//                          .key_offsets = offsets, .scale = mh::attention_scale(D), .mask = mh::Mask::causal()};
//   mh::attention_forward(in, {.output = {y, Nq, H * D}});
//
// kernels/attention.h has every field with its shape; examples/attention_on_memory.cpp is a whole program.
#pragma once

#include "multihead/kernels/attention.h"
