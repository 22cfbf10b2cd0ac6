// Shared by the loss and the search: one panel of logits, and maximum and sum of its rows. Include once for
// each instruction set.

#if defined(MULTIHEAD_KERNELS_VOCABULARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_VOCABULARY_INL_H_
#undef MULTIHEAD_KERNELS_VOCABULARY_INL_H_
#else
#define MULTIHEAD_KERNELS_VOCABULARY_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "multihead/kernels/exp-inl.h"
#include "multihead/kernels/micro_kernel-inl.h"
#include "multihead/kernels/product_rows.h"
#include "multihead/kernels/tanh-inl.h"
#include "multihead/kernels/vocabulary.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// x = cap tanh(x / cap) for `size` numbers, whole vectors.
HWY_NOINLINE inline void cap_logits(float cap, float* x, int64_t size) {
  const FloatTag d;
  const auto factor = hn::Set(d, cap), inverse = hn::Set(d, 1 / cap);
  for (int64_t i = 0; i < size; i += static_cast<int64_t>(kLanes))
    hn::Store(tanh_vector(d, hn::Mul(hn::Load(d, x + i), inverse), factor), d, x + i);
}

/// to [rows, kPanel] = logits of these states at panel p. Columns beyond the vocabulary are -infinity: they have no
/// probability.
HWY_INLINE void panel_logits(const OutputLayer& layer, const ProductRows& rows, int64_t p, float* to) {
  const FloatTag d;
  const ConstMatrixView& states = rows.numbers;
  const int64_t column = p * kPanel;
  const int64_t width = std::min(kPanel, layer.logits->cols() - column);
  if (layer.logits->kind() != PanelKind::kFloat32) {
    multiply_small_panel(rows, *layer.logits, p, 0, states.cols, {to, states.rows, kPanel, kPanel}, false);
  } else {
    multiply_panel({.data = states.data,
                    .row_stride = states.stride,
                    .k_stride = 1,
                    .rows = states.rows,
                    .depth = states.cols},
                   layer.logits->panel_data(p), to, kPanel, kPanel, false);
  }
  if (!layer.bias.empty()) {
    HWY_ALIGN float bias[kPanel] = {};
    std::copy_n(layer.bias.data + column, width, bias);
    for (int64_t r = 0; r < states.rows; ++r) {
      for (int v = 0; v < kPanelVectors; ++v) {
        float* at = to + r * kPanel + v * kLanes;
        hn::Store(hn::Add(hn::Load(d, at), hn::Load(d, bias + v * kLanes)), d, at);
      }
    }
  }
  if (layer.soft_cap) cap_logits(*layer.soft_cap, to, states.rows * kPanel);
  if (width < kPanel) {
    for (int64_t r = 0; r < states.rows; ++r) {
      std::fill(to + r * kPanel + width, to + (r + 1) * kPanel, -std::numeric_limits<float>::infinity());
    }
  }
}

/// The largest of a row of kPanel logits.
HWY_INLINE float panel_max(const float* row) {
  const FloatTag d;
  auto largest = hn::Load(d, row);
  for (int v = 1; v < kPanelVectors; ++v) largest = hn::Max(largest, hn::Load(d, row + v * kLanes));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

/// Returns the sum of exp(row[j] - shift); kStore: these are the new row.
template <bool kStore = true>
HWY_INLINE float panel_exp(float* row, float shift) {
  const FloatTag d;
  const auto shift_vector = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  for (int v = 0; v < kPanelVectors; ++v) {
    const auto e = exp_vector(d, hn::Sub(hn::Load(d, row + v * kLanes), shift_vector));
    if constexpr (kStore) hn::Store(e, d, row + v * kLanes);
    sum = hn::Add(sum, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

}  // namespace
}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
