// Attention(Q, K, V) = softmax(scale * Q K^T) V for every head of every sequence (Vaswani et al. 2017, eq. 1)
//
// Exact and fused: no matrix of Tq x Tk is ever stored. The forward pass keeps lse = log sum_j exp(s_ij),
// from which the backward pass recomputes the weights p_ij = exp(s_ij - lse_i).
//
// Ragged: row i of q belongs to the sequence whose query_offsets enclose it; nothing is padded. Heads lie
// side by side in a row, [N, H * D] with any row stride, straight out of a packed projection.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/base/matrix_view.h"
#include "multihead/kernels/dropout.h"
#include "multihead/kernels/mask.h"

namespace mh {

/// What is attended to what. S sequences, Nq query rows, Nk keys in all, H query heads, G key heads, U value
/// heads. Query head h reads key head h * G / H and value head h * U / H. REQUIRES: G and U divide H.
struct AttentionInputs {
  ConstMatrixView q;                       // [Nq, H * d_key]
  ConstMatrixView k;                       // [Nk, G * d_key]
  ConstMatrixView v;                       // [Nk, U * d_value]
  int heads = 1;                           // H
  int key_heads = 1;                       // G
  int value_heads = 1;                     // U
  int d_key = 0;                           // 1 ... 1024
  int d_value = 0;                         // 1 ... 1024
  std::span<const int32_t> query_offsets;  // [S + 1]
  std::span<const int32_t> key_offsets;    // [S + 1]
  /// Empty: key j of all is row j of k and v. Or [Nk]: it is row key_rows[j], so that in cached decoding a
  /// beam reorder changes these numbers and copies nothing.
  std::span<const int32_t> key_rows;
  float scale = 1;  // attention_scale(d_key) for the paper's
  Mask mask;
  Dropout dropout;              // of the weights; offsets = query_offsets
  std::span<const float> gate;  // empty, or [H]: the output of head h is multiplied by gate[h]
};

/// 1 / sqrt(d_key).
float attention_scale(int d_key);

/// Where results go. Empty views and null pointers are not wanted; wanting more never changes `output`.
struct AttentionOutputs {
  MatrixView output;     // [Nq, H * d_value]
  float* lse = nullptr;  // [Nq, H]; -infinity for a row that may attend to nothing
  /// The weights before dropout: for sequence s and head h a matrix [Tq, Tk] of stride Tk that starts at
  /// weights + weight_offset(s) + h * Tq * Tk, where weight_offset(s) = H * sum over r < s of Tq_r * Tk_r.
  float* weights = nullptr;
};
/// Numbers that AttentionOutputs::weights must hold.
int64_t attention_weights_size(const AttentionInputs& inputs);

/// Throws ShapeError naming the field of an impossible description.
void attention_forward(const AttentionInputs& inputs, const AttentionOutputs& outputs);

/// Given the gradient of the output and what the forward pass kept. The three gradients are written, not
/// added to; with key_rows given, gradients of k and v are not defined (ShapeError).
struct AttentionGradients {
  ConstMatrixView output;      // [Nq, H * d_value] what the forward pass wrote
  const float* lse = nullptr;  // [Nq, H] what the forward pass wrote
  ConstMatrixView d_output;    // [Nq, H * d_value]
  MatrixView d_q;              // [Nq, H * d_key]
  MatrixView d_k;              // [Nk, G * d_key]
  MatrixView d_v;              // [Nk, U * d_value]
  /// [H], or not wanted: sum of d_output . (the output before the gate), which is computed again, so that it
  /// is right for a gate of 0 too.
  float* d_gate = nullptr;
};
/// Throws ShapeError naming the field of an impossible description.
void attention_backward(const AttentionInputs& inputs, const AttentionGradients& gradients);

}  // namespace mh
