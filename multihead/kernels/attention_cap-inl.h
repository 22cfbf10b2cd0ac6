// Part of the attention kernel: the soft cap of scores. Where there is one, the transposed queries are scaled so that
// a product x is a score in units of the cap; C tanh x then is the capped score in units of log 2, with C the cap in
// units of log 2.
#if defined(MULTIHEAD_KERNELS_ATTENTION_CAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_CAP_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_CAP_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_CAP_INL_H_
#endif

#include "multihead/kernels/attention.h"
#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// What products of queries and keys are multiplied with: for scores in units of log 2, or in units of the cap.
HWY_INLINE float product_factor(const AttentionInputs& in) {
  return in.soft_cap ? in.scale / *in.soft_cap : in.scale * kLog2e;
}
/// C; 0 when there is no cap.
HWY_INLINE float cap_of(const AttentionInputs& in) {
  return in.soft_cap ? *in.soft_cap * kLog2e : 0.0f;
}

/// C tanh x.
HWY_INLINE VF capped(VF x, float cap) {
  return tanh_vector(DF(), x, hn::Set(DF(), cap));
}
HWY_NOINLINE inline void cap_numbers(float* HWY_RESTRICT x, int64_t size, float cap) {
  const DF d;
  for (int64_t i = 0; i < size; i += kLanes) hn::Store(capped(hn::Load(d, x + i), cap), d, x + i);
}

/// The same bits, faster where all numbers are small, as they mostly are.
template <int n>
HWY_INLINE void cap_row(VF (&x)[n], float cap) {
  const DF d;
  const DI di;
  const auto factor = hn::Set(d, cap);
  VF result[n];
  auto largest = hn::Zero(di);  // as whole numbers, which order positive floats and are never NaN
  MH_UNROLL for (int w = 0; w < n; ++w) {
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(x[w])));
    result[w] = tanh_small(d, x[w], factor);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(di, hn::Gt(largest, hn::BitCast(di, hn::Set(d, kTanhSmall)))))) {
    HWY_ALIGN float numbers[n * kLanes];
    MH_UNROLL for (int w = 0; w < n; ++w) hn::Store(x[w], d, numbers + w * kLanes);
    cap_numbers(numbers, n * kLanes, cap);
    MH_UNROLL for (int w = 0; w < n; ++w) result[w] = hn::Load(d, numbers + w * kLanes);
  }
  MH_UNROLL for (int w = 0; w < n; ++w) x[w] = result[w];
}

/// What the cap does to gradients: 1 - (y / C)^2 for a capped score y.
HWY_INLINE VF cap_slope(VF y, VF inverse_cap) {
  const auto share = hn::Mul(y, inverse_cap);
  return hn::NegMulAdd(share, share, hn::Set(DF(), 1.0f));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
