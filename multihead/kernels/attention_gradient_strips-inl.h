// Part of the attention kernel's backward pass: strips of weights P and of gradients of the scores dS.
#if defined(MULTIHEAD_KERNELS_ATTENTION_GRADIENT_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_STRIPS_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_STRIPS_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_GRADIENT_STRIPS_INL_H_
#endif

#include "multihead/kernels/attention_gradient_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// P and dS of keys [0, n) against kWide strips of a block; both strips begin at the first key. dS is the gradient of
/// the scores before the cap; with rule.raw p are the capped scores.
template <int kWide, bool kCapped>
HWY_NOINLINE void weight_strips(const Block& b, int first, Rows keys, Rows values, int64_t n, int64_t d_key,
                                int64_t d_value, const Rule& rule, float* HWY_RESTRICT p,
                                float* HWY_RESTRICT ds) {
  const DF d;
  constexpr int kKeys = kTileKeys<kWide>, kWidth = kWide * kVectors;
  const float* HWY_RESTRICT lse = b.lse + first * kBlock;
  const float* HWY_RESTRICT delta = b.delta + first * kBlock;
  const auto factor = hn::Set(d, rule.factor);
  [[maybe_unused]] const auto inverse_cap = hn::Set(d, kCapped ? 1 / rule.cap : 0.0f);
  for (int64_t j = 0; j < n; j += kKeys) {
    const float* HWY_RESTRICT tile[kKeys];
    VF acc[kKeys][kWidth];
    tile_rows(keys, j, n, tile);
    dot_tile<kWide>(tile, b.queries + first * kBlock * d_key, d_key, acc);
    if constexpr (kCapped) {
      MH_UNROLL for (int t = 0; t < kKeys; ++t) cap_row(acc[t], rule.cap);
    }
    MH_UNROLL for (int w = 0; w < kWidth; ++w) {
      const int64_t at = w / kVectors * kStripSize + j * kBlock + w % kVectors * kLanes;
      if (rule.raw) {
        MH_UNROLL for (int t = 0; t < kKeys; ++t) hn::Store(acc[t][w], d, p + at + t * kBlock);
      } else {
        const auto subtracted = hn::Load(d, lse + w * kLanes);
        MH_UNROLL for (int t = 0; t < kKeys; ++t) {
          const auto weight = exp2_vector(hn::Sub(acc[t][w], subtracted));
          hn::Store(weight, d, p + at + t * kBlock);
          if constexpr (kCapped) {  // what dP - delta will be multiplied with
            hn::Store(hn::Mul(weight, cap_slope(acc[t][w], inverse_cap)), d, ds + at + t * kBlock);
          }
        }
      }
    }
    tile_rows(values, j, n, tile);
    dot_tile<kWide>(tile, b.gradients + first * kBlock * d_value, d_value, acc);
    MH_UNROLL for (int w = 0; w < kWidth; ++w) {
      const int64_t at = w / kVectors * kStripSize + j * kBlock + w % kVectors * kLanes;
      if (rule.raw) {
        MH_UNROLL for (int t = 0; t < kKeys; ++t) hn::Store(acc[t][w], d, ds + at + t * kBlock);
      } else {
        const auto subtracted = hn::Load(d, delta + w * kLanes);
        MH_UNROLL for (int t = 0; t < kKeys; ++t) {
          const auto difference = hn::MulSub(acc[t][w], factor, subtracted);
          const float* by = kCapped ? ds : p;
          hn::Store(hn::Mul(hn::Load(d, by + at + t * kBlock), difference), d, ds + at + t * kBlock);
        }
      }
    }
  }
}

template <bool kCapped>
HWY_INLINE void weight_strips(int strips, const Block& b, int first, Rows keys, Rows values, int64_t n,
                              int64_t d_key, int64_t d_value, const Rule& rule, float* p, float* ds) {
  if constexpr (kGroups == 1) {
    for (int s = 0; s < strips; ++s) {
      weight_strips<1, kCapped>(b, first + s, keys, values, n, d_key, d_value, rule, p + s * kStripSize,
                                ds + s * kStripSize);
    }
  } else {
    const auto weights = strips == 4   ? weight_strips<4, kCapped>
                         : strips == 3 ? weight_strips<3, kCapped>
                         : strips == 2 ? weight_strips<2, kCapped>
                                       : weight_strips<1, kCapped>;
    weights(b, first, keys, values, n, d_key, d_value, rule, p, ds);
  }
}
HWY_INLINE void weight_strips(int strips, const Block& b, int first, Rows keys, Rows values, int64_t n,
                              int64_t d_key, int64_t d_value, const Rule& rule, float* p, float* ds) {
  if (rule.cap > 0)
    return weight_strips<true>(strips, b, first, keys, values, n, d_key, d_value, rule, p, ds);
  weight_strips<false>(strips, b, first, keys, values, n, d_key, d_value, rule, p, ds);
}

/// Turns scores and dP of n keys into weights (with gate and dropout) and dS. delta: null when these are
/// all keys; then it is computed from them. Returns the strip's part of dg, the gradient of the gate.
HWY_NOINLINE inline float combine_strip(const Rule& rule, const float* lse, const float* delta, int lanes,
                                        const uint16_t* allow, const uint16_t* keep, int64_t n,
                                        float* HWY_RESTRICT p, float* HWY_RESTRICT ds) {
  const DF d;
  HWY_ALIGN float gates[kBlock];
  const auto factor = hn::Set(d, rule.factor), weight_factor = hn::Set(d, rule.weight_factor);
  for (int w = 0; w < kVectors; ++w) {
    const auto base = hn::Load(d, lse + w * kLanes);
    auto gate = hn::Zero(d);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = j * kBlock + w * kLanes;
      VF weight = exp2_vector(hn::Sub(hn::Load(d, p + at), base));
      VF dp = hn::Load(d, ds + at);
      if (keep) dp = hn::IfThenElseZero(block_mask(keep[j], w), hn::Mul(dp, hn::Set(d, rule.keep_scale)));
      if (allow) {
        const auto seen = block_mask(allow[j], w);
        dp = hn::IfThenElseZero(seen, dp);
        weight = hn::IfThenElseZero(seen, weight);
      }
      gate = hn::MulAdd(weight, dp, gate);
      hn::Store(weight, d, p + at);
      hn::Store(dp, d, ds + at);
    }
    hn::Store(gate, d, gates + w * kLanes);
    const auto subtracted = delta ? hn::Load(d, delta + w * kLanes) : hn::Mul(gate, factor);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = j * kBlock + w * kLanes;
      VF weight = hn::Load(d, p + at);
      VF score = hn::Mul(weight, hn::MulSub(hn::Load(d, ds + at), factor, subtracted));
      // A row's delta may be NaN because of keys that it sees; masked keys must get 0 all the same.
      if (allow) score = hn::IfThenElseZero(block_mask(allow[j], w), score);
      weight = hn::Mul(weight, weight_factor);
      if (keep) weight = hn::IfThenElseZero(block_mask(keep[j], w), weight);
      hn::Store(weight, d, p + at);
      hn::Store(score, d, ds + at);
    }
  }
  float sum = 0;
  for (int i = 0; i < lanes; ++i) sum += gates[i];
  return sum;
}

HWY_NOINLINE inline void scale_strip(float* HWY_RESTRICT strip, int64_t n, float scale) {
  for (int64_t i = 0; i < n * kBlock; ++i) strip[i] *= scale;
}

/// slopes = what the cap does to the gradients of capped scores.
HWY_NOINLINE inline void slopes_of_strip(const float* HWY_RESTRICT capped, int64_t n, float cap,
                                         float* HWY_RESTRICT slopes) {
  const DF d;
  const auto inverse_cap = hn::Set(d, 1 / cap);
  for (int64_t i = 0; i < n * kBlock; i += kLanes)
    hn::Store(cap_slope(hn::Load(d, capped + i), inverse_cap), d, slopes + i);
}
/// strip *= slopes; 0 stays 0.
HWY_NOINLINE inline void multiply_strip(float* HWY_RESTRICT strip, int64_t n,
                                        const float* HWY_RESTRICT slopes) {
  for (int64_t i = 0; i < n * kBlock; ++i) strip[i] = strip[i] == 0 ? 0 : strip[i] * slopes[i];
}

/// 0 where a query may not see a key.
HWY_NOINLINE inline void mask_strip(const uint16_t* allow, int64_t n, float* HWY_RESTRICT p,
                                    float* HWY_RESTRICT ds) {
  const DF d;
  for (int64_t j = 0; j < n; ++j) {
    for (int w = 0; w < kVectors; ++w) {
      const auto seen = block_mask(allow[j], w);
      const int64_t at = j * kBlock + w * kLanes;
      hn::Store(hn::IfThenElseZero(seen, hn::Load(d, p + at)), d, p + at);
      hn::Store(hn::IfThenElseZero(seen, hn::Load(d, ds + at)), d, ds + at);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
