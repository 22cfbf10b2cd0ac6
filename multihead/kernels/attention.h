// Attention(Q, K, V) = softmax(scale * Q K^T) V for every head of every sequence (Vaswani et al. 2017, eq. 1)
//
// Exact and fused: no matrix of Tq x Tk (queries x keys) is ever stored. The forward pass keeps
// lse = log sum_j exp(s_ij), from which the backward pass recomputes the weights p_ij = exp(s_ij - lse_i).
//
// Ragged: row i of q belongs to the sequence whose query_offsets enclose it; nothing is padded. Heads lie
// side by side in a row, [N, H * D] with any row stride, straight out of a packed projection; or elsewhere, by
// strides of heads and sequences (BasicHeadsView).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "multihead/base/matrix_view.h"
#include "multihead/kernels/attention_views.h"
#include "multihead/kernels/dropout.h"
#include "multihead/kernels/mask.h"

namespace mh {

/// The biases of the scores: numbers that are added to the scaled (and capped) scores before the softmax. Each is
/// optional, and all that are given are added. The distance of key j from query i of a sequence is j -
/// (i + Tk - Tq): the last query has the position of the last key, as for Mask::causal(). Clipped to k, it
/// is one of the 2k + 1 numbers -k ... k. A bias takes little time for a single query in its sequence
/// (a step of decoding) and for long sequences; with a bias, two to six queries and fewer than 256 keys
/// take as long as sixteen queries.
struct AttentionBias {
  /// [H]: adds -slopes[h] * |distance| (ALiBi, Press et al. 2022).
  std::span<const float> slopes = {};
  /// [H, columns]: adds by_distance[h][clipped distance + k]. With `buckets` several distances share a
  /// number, as in T5 (Raffel et al. 2020): adds by_distance[h][buckets[clipped distance + k]].
  std::span<const float> by_distance = {};
  int distance_clip = 0;                  // k
  int distance_columns = 0;               // 2k + 1, or the number of buckets
  std::span<const int32_t> buckets = {};  // empty, or [2k + 1]: columns of by_distance
  /// A number for each score.
  std::span<const float> elements = {};
  /// Unset: they lie as AttentionOutputs::weights do, as their gradient does in any case.
  std::optional<ElementStrides> element_strides = {};
  /// [Nq, H * columns]: adds by_query[row][h][clipped distance + k], as in Shaw et al. 2018, where these
  /// numbers are the products of the query with the vectors of the distances.
  ConstMatrixView by_query = {};
  /// [Nk, H * columns]: adds by_key[key_offsets[s] + j][h][clipped distance + k], as in DeBERTa (He et al. 2021), where
  /// these numbers are the products of the key with other vectors of the distances.
  ConstMatrixView by_key = {};
  int vector_clip = 0;                           // k of by_query and by_key
  int vector_columns = 0;                        // with vector_buckets: how many columns there are
  std::span<const int32_t> vector_buckets = {};  // empty, or [2k + 1]: columns of by_query and by_key

  bool by_distances() const { return !slopes.empty() || !by_distance.empty(); }
  bool by_vectors() const { return by_query.cols != 0 || by_key.cols != 0; }
  bool none() const { return !by_distances() && elements.empty() && !by_vectors(); }
  /// How many columns by_query and by_key have for each head.
  int64_t columns_of_vectors() const {
    return vector_buckets.empty() ? 2 * int64_t{vector_clip} + 1 : vector_columns;
  }
};

/// Where the gradients of a bias go. They are overwritten, not added to; null or empty: not wanted.
struct AttentionBiasGradients {
  float* slopes = nullptr;       // [H]
  float* by_distance = nullptr;  // [H, columns]
  float* elements = nullptr;     // as AttentionOutputs::weights; 0 where a mask hides the key
  MatrixView by_query = {};      // [Nq, H * columns]
  MatrixView by_key = {};        // [Nk, H * columns]
};

/// The inputs of attention. S sequences, Nq query rows, Nk key rows, H query heads, G key heads, U value
/// heads. Query head h reads key head h * G / H and value head h * U / H. REQUIRES: G and U divide H.
struct AttentionInputs {
  ConstHeadsView q;  // [Nq, H * d_key]
  ConstHeadsView k;  // [Nk, G * d_key]; with key_rows without the two strides
  ConstHeadsView v;  // [Nk, U * d_value]; the same
  /// In place of k and v, which then are empty: the same rounded to bfloat16, the upper half of a float32, as a key/value
  /// cache may keep them. They are widened where they are read, so results are those of the widened numbers in k and v, bit
  /// for bit. There is no backward pass.
  ConstHalfView half_k, half_v;
  int heads = 1;                           // H
  int key_heads = 1;                       // G
  int value_heads = 1;                     // U
  int d_key = 0;                           // 1 ... 1024
  int d_value = 0;                         // 1 ... 1024
  std::span<const int32_t> query_offsets;  // [S + 1]
  std::span<const int32_t> key_offsets;    // [S + 1]
  /// Empty: key j is row j of k and v. Otherwise [Nk]: key j is row key_rows[j], so that cached decoding
  /// reorders a beam by changing these numbers and copies no keys.
  std::span<const int32_t> key_rows;
  float scale = 1;  // the paper's is attention_scale(d_key)
  /// A scaled score s becomes soft_cap tanh(s / soft_cap) before bias, mask and softmax; unset: it stays as it is.
  std::optional<float> soft_cap = {};
  Mask mask;
  Dropout dropout;  // of the weights; its offsets are query_offsets
  /// Empty, or [S, H]: the output of head h of sequence s is multiplied by gate(s, h). One row [1, H] stands
  /// for all sequences.
  ConstMatrixView gate = {};
  AttentionBias bias = {};

  /// Whether keys and values are half_k and half_v.
  bool halves() const { return half_k.cols != 0; }
  int64_t key_count() const { return halves() ? half_k.rows : k.rows; }
  /// The gate of a sequence and head; 1 where there is none.
  float gate_of(size_t sequence, int64_t head) const {
    return gate.data == nullptr ? 1.0f : gate(gate.rows == 1 ? 0 : static_cast<int64_t>(sequence), head);
  }
};

/// Returns 1 / sqrt(d_key).
float attention_scale(int d_key);

/// Statistics of the weights (before dropout) of each query row and head, for those who do not need the
/// weights themselves. Null: not wanted. For a row that may attend to nothing the highest score is
/// -infinity and the others are 0.
struct AttentionStatistics {
  float* highest = nullptr;            // [Nq, H] the highest score
  float* entropy = nullptr;            // [Nq, H] -sum of p log p, in nats
  float* expected_position = nullptr;  // [Nq, H] sum of p j, keys counted from 0 in their sequence
  float* expected_distance = nullptr;  // [Nq, H] sum of p |distance|, distances as in AttentionBias
  std::span<const int32_t> distances = {};
  /// [Nq, H, distances]: the weight of the key at each of those distances, 0 if there is none.
  float* mass = nullptr;

  bool wanted() const { return highest || entropy || expected_position || expected_distance || mass; }
};

/// Where the results go. What has an empty view or a null pointer is not computed; asking for more never
/// changes `output`.
struct AttentionOutputs {
  HeadsView output;      // [Nq, H * d_value]
  float* lse = nullptr;  // [Nq, H]; -infinity for a row that may attend to nothing
  /// The weights before dropout: for sequence s and head h a matrix [Tq, Tk] of stride Tk that starts at
  /// weights + weight_offset(s) + h * Tq * Tk, where weight_offset(s) = H * sum over r < s of Tq_r * Tk_r.
  float* weights = nullptr;
  AttentionStatistics statistics = {};  // any of them needs lse
  NumberStrides lse_strides = {};
};
/// How many numbers AttentionOutputs::weights must have room for.
int64_t attention_weights_size(const AttentionInputs& inputs);

/// Computes the outputs. Throws ShapeError or UsageError naming the field that is wrong.
void attention_forward(const AttentionInputs& inputs, const AttentionOutputs& outputs);

/// What the backward pass reads and writes. The gradients are overwritten, not added to. With key_rows the
/// gradients of k and v are not defined (ShapeError).
struct AttentionGradients {
  ConstHeadsView output;       // [Nq, H * d_value] what the forward pass wrote
  const float* lse = nullptr;  // [Nq, H] what the forward pass wrote
  ConstHeadsView d_output;     // [Nq, H * d_value]
  HeadsView d_q;               // [Nq, H * d_key]
  HeadsView d_k;               // [Nk, G * d_key]
  HeadsView d_v;               // [Nk, U * d_value]
  /// Empty, or [S, H]: for each sequence and head the sum of d_output . (the output before the gate); with one
  /// row [1, H] the sum over all sequences. Gates need not be given. The output before the gate is computed
  /// again, so the gradient is right for a gate of 0, too.
  MatrixView d_gate = {};
  AttentionBiasGradients d_bias = {};
  NumberStrides lse_strides = {};
};
/// Computes the gradients. Throws ShapeError or UsageError naming the field that is wrong.
void attention_backward(const AttentionInputs& inputs, const AttentionGradients& gradients);

}  // namespace mh
