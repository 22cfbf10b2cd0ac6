// Part of the attention kernel's backward pass: a few queries and keys, pair by pair with dot products.
// Strips of 16 queries and tiles of 8 keys would be almost empty.
#if defined(MULTIHEAD_KERNELS_ATTENTION_GRADIENT_FEW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_FEW_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_FEW_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_GRADIENT_FEW_INL_H_
#endif

#include "multihead/kernels/attention_gradient_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr int64_t kFewPairs = 9;

/// y += factor * x
HWY_INLINE void add_scaled(float factor, const float* HWY_RESTRICT x, int size, float* HWY_RESTRICT y) {
  const DF d;
  const auto f = hn::Set(d, factor);
  int c = 0;
  for (; c + kLanes <= size; c += kLanes) {
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, x + c), hn::LoadU(d, y + c)), d, y + c);
  }
  if (c == size) return;
  store_first(hn::MulAdd(f, load_first(x + c, size - c), load_first(y + c, size - c)), y + c, size - c);
}

/// With p = exp(scale q k - lse) and dp = do v: ds = p (dp - sum p dp) scale; dq += ds k, dk += ds q, dv += p
/// do. A cap multiplies ds by its slope. REQUIRES: at most kFewPairs keys.
template <bool kCapped>
HWY_NOINLINE void backward_few(const AttentionInputs& in, const Head& h, const Target& d_q, const Target& d_k,
                               const Target& d_v) {
  fill_zero(d_q.data, d_q.stride, h.queries, in.d_key);
  if (!d_k.add) fill_zero(d_k.data, d_k.stride, h.keys, in.d_key);
  if (!d_v.add) fill_zero(d_v.data, d_v.stride, h.keys, in.d_value);
  for (int64_t i = 0; i < h.queries; ++i) {
    const float *q = h.q.row(i), *d_output = h.d_output.row(i), lse = h.lse[i * h.lse_stride];
    float p[kFewPairs] = {}, dp[kFewPairs] = {}, delta = 0;
    [[maybe_unused]] float slope[kFewPairs] = {};
    const auto allowed = [&](int64_t j)
                             HWY_ATTR { return in.mask.allows(h.row + i, i, j, h.queries, h.keys); };
    for (int64_t j = 0; j < h.keys; ++j) {
      if (!allowed(j)) continue;
      float score = in.scale * dot(q, h.k.row(j), in.d_key);
      if constexpr (kCapped) {
        const VF share = capped(hn::Set(DF(), score / *in.soft_cap), 1.0f);
        slope[j] = hn::GetLane(cap_slope(share, hn::Set(DF(), 1.0f)));
        score = *in.soft_cap * hn::GetLane(share);
      }
      p[j] = hn::GetLane(exp2_vector(hn::Set(DF(), kLog2e * (score - lse))));
      dp[j] = dot(d_output, h.v.row(j), in.d_value);
      delta = multiply_add(p[j], dp[j], delta);
    }
    for (int64_t j = 0; j < h.keys; ++j) {
      if (!allowed(j)) continue;
      float ds = in.scale * p[j] * (dp[j] - delta);
      if constexpr (kCapped) ds *= slope[j];
      add_scaled(ds, h.k.row(j), in.d_key, d_q.from(i).data);
      add_scaled(ds, q, in.d_key, d_k.from(j).data);
      add_scaled(p[j], d_output, in.d_value, d_v.from(j).data);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
