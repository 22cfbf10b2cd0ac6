// Part of the attention kernel's backward pass: the gradients of the numbers of a bias.
#if defined(MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BIAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BIAS_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BIAS_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_GRADIENT_BIAS_INL_H_
#endif

#include "multihead/kernels/attention_gradient_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// Sets up the bias of a head, and the memory for its gradients from keys [begin, end).
inline void begin_bias(const AttentionInputs& in, const AttentionBiasGradients& g, int64_t begin, int64_t end,
                       int64_t weight_offset, Head& h, HeadBias& bias, GradientMemory& memory) {
  bias =
      head_bias(in, h.sequence, h.row, h.head, 0, h.queries, h.queries, h.keys, weight_offset, memory.bias);
  h.bias = &bias;
  h.d_bias = {};
  if (g.slopes || g.by_distance) {
    const int64_t size = h.queries + kBlock + h.keys;
    h.d_bias.by_distance = memory.distances.get(size);
    std::fill_n(h.d_bias.by_distance, size, 0.0f);
  }
  if (g.elements) {
    h.d_bias.elements = g.elements + weight_offset + h.head * h.queries * h.keys;
    if (end > begin) fill_zero(h.d_bias.elements + begin, h.keys, h.queries, end - begin);
  }
  if (g.by_query.cols != 0) h.d_bias.by_query = memory.by_query.get(kQueries * bias.vector_columns);
  if (g.by_key.cols != 0) {
    float* first = g.by_key.row(in.key_offsets[h.sequence]) + h.head * bias.vector_columns;
    fill_zero(first + begin * g.by_key.stride, g.by_key.stride, end - begin, bias.vector_columns);
    h.d_bias.by_key = first;
    h.d_bias.key_stride = g.by_key.stride;
  }
}

/// Adds up the gradients by distance: to[0] for the slope, to[1 + column] for by_distance.
inline void finish_distances(const AttentionInputs& in, const Head& h, float* to) {
  double slope = 0;
  for (int64_t x = 0; x < h.queries + kBlock + h.keys; ++x) {
    const int64_t distance = h.bias->origin - x;
    const float sum = h.d_bias.by_distance[x];
    slope -= static_cast<double>(std::abs(distance)) * static_cast<double>(sum);
    if (!in.bias.by_distance.empty()) to[1 + detail::bias_column(in.bias, distance)] += sum;
  }
  to[0] = static_cast<float>(slope);
}

/// Writes or adds a block's part of the gradient of by_query to its rows.
HWY_INLINE void finish_by_query(const Head& h, const MatrixView& out, int64_t first, int64_t n, bool add) {
  const int64_t columns = h.bias->vector_columns;
  for (int64_t r = 0; r < n; ++r) {
    float* to = out.row(h.row + first + r) + h.head * columns;
    const float* from = h.d_bias.by_query + r * columns;
    for (int64_t c = 0; c < columns; ++c) to[c] = add ? to[c] + from[c] : from[c];
  }
}
HWY_INLINE void begin_by_query(const Head& h) {
  if (h.d_bias.by_query) std::fill_n(h.d_bias.by_query, kQueries * h.bias->vector_columns, 0.0f);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
