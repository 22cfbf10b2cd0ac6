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
template <bool kCapped>
HWY_INLINE float product_factor(const AttentionInputs& in) {
  return kCapped ? in.scale / *in.soft_cap : in.scale * kLog2e;
}
HWY_INLINE float product_factor(const AttentionInputs& in) {
  return in.soft_cap ? product_factor<true>(in) : product_factor<false>(in);
}
/// C; 0 when there is no cap.
HWY_INLINE float cap_of(const AttentionInputs& in) {
  return in.soft_cap ? *in.soft_cap * kLog2e : 0.0f;
}

#if HWY_TARGET == HWY_AVX3
/// The largest |x| of the cells; from there on tanh is 1.
constexpr float kTanhEnd = 9.25f;
/// Cell n holds the |x| for which the last two bits of the exponent of |x| + 5/8 and the first two of its fraction are
/// n: four cells for each power of two. Row 0 has their centres, rows 1 to 6 the coefficients of a polynomial of degree
/// 5 about the centre, minimax for the relative error (3.8e-8; that of tanh is 1.2e-7 with all rounding). The cell of 0
/// has its centre there, so small numbers keep their digits.
alignas(64) constexpr float kTanhCells[7][16] = {
    {0x1.ap0f, 0x1.1p1f, 0x1.5p1f, 0x1.9p1f, 0x1.fp1f, 0x1.38p2f, 0x1.78p2f, 0x1.b8p2f, 0x1.0cp3f, 0,
     0x1.8p-3f, 0x1.4p-2f, 0x1p-1f, 0x1.8p-1f, 0x1p0f, 0x1.4p0f},
    {0x1.d9c6fcp-1f, 0x1.f1994ep-1f, 0x1.faa794p-1f, 0x1.fe06eap-1f, 0x1.ff8f2p-1f, 0x1.fff0b8p-1f,
     0x1.fffdeep-1f, 0x1.ffffb8p-1f, 0x1.fffffep-1f, 0, 0x1.7b8ffap-3f, 0x1.35f98ap-2f, 0x1.d9353ep-2f,
     0x1.45323ep-1f, 0x1.85efacp-1f, 0x1.b2523cp-1f},
    {0x1.265e1ep-3f, 0x1.c65b14p-5f, 0x1.545206p-6f, 0x1.f81be8p-8f, 0x1.c34b38p-10f, 0x1.e8f902p-13f,
     0x1.08ba5p-15f, 0x1.1e9eb8p-18f, 0x1.cad1d6p-23f, 0x1p0f, 0x1.ee69e4p-1f, 0x1.d11574p-1f, 0x1.92a94ap-1f,
     0x1.3173b2p-1f, 0x1.ae0dcp-2f, 0x1.1f2512p-2f},
    {-0x1.10693ep-3f, -0x1.b991p-5f, -0x1.50be9p-6f, -0x1.f61f62p-8f, -0x1.c22f5ep-10f, -0x1.e81d68p-13f,
     -0x1.0849dep-15f, -0x1.1e25ecp-18f, -0x1.bf96a4p-23f, 0x1.dd213ap-22f, -0x1.6e8624p-3f, -0x1.1991f6p-2f,
     -0x1.742576p-2f, -0x1.8403cap-2f, -0x1.47877p-2f, -0x1.e72a2ep-3f},
    {0x1.33ee6cp-4f, 0x1.15b722p-5f, 0x1.b79b26p-7f, 0x1.4c2bfap-8f, 0x1.2ba97p-10f, 0x1.4562b6p-13f,
     0x1.606d9cp-16f, 0x1.7d968cp-19f, 0x1.223b38p-23f, -0x1.555c3p-2f, -0x1.27a5a2p-2f, -0x1.c1a5cap-3f,
     -0x1.81f01p-4f, 0x1.56741p-5f, 0x1.a85e08p-4f, 0x1.bba644p-4f},
    {-0x1.96c608p-6f, -0x1.ec7c32p-7f, -0x1.a8f494p-8f, -0x1.4ac562p-9f, -0x1.39f67cp-11f, -0x1.564796p-14f,
     -0x1.72ed2cp-17f, -0x1.91a572p-20f, -0x1.6752e8p-24f, 0x1.0d5238p-11f, 0x1.ce192p-4f, 0x1.42f4f2p-3f,
     0x1.4ed9bap-3f, 0x1.987ad8p-4f, 0x1.cd4146p-6f, -0x1.90d224p-7f},
    {0x1.1d6c2ep-10f, 0x1.23afb6p-8f, 0x1.35594ap-9f, 0x1.ffdd9cp-11f, 0x1.f13ecp-13f, 0x1.10e496p-15f,
     0x1.2800aap-18f, 0x1.408e9p-21f, 0x1.458a16p-25f, 0x1.09ea1ap-3f, 0x1.8dc64ap-4f, 0x1.784beep-5f,
     -0x1.a45192p-6f, -0x1.0397c4p-4f, -0x1.7b5f86p-5f, -0x1.3d7fb6p-6f},
};
#endif

/// x = C tanh x, for a few vectors at once, since the steps for one wait for one another.
template <int n>
HWY_INLINE void cap_row(VF (&x)[n], float cap) {
  const DF d;
  const auto factor = hn::Set(d, cap);
#if HWY_TARGET == HWY_AVX3
  VF t[n], p[n];
  hn::Vec<DU> cell[n];
  const auto of = [&](int row, int w) HWY_ATTR {  // looks at the last four bits of a lane's cell
    return VF{_mm512_permutexvar_ps(cell[w].raw, _mm512_load_ps(kTanhCells[row]))};
  };
  MH_UNROLL for (int w = 0; w < n; ++w) {
    t[w] = hn::Min(hn::Set(d, kTanhEnd), hn::Abs(x[w]));  // in this order NaN stays NaN
    cell[w] = hn::ShiftRight<21>(hn::BitCast(DU(), hn::Add(t[w], hn::Set(d, 0.625f))));
  }
  MH_UNROLL for (int w = 0; w < n; ++w) t[w] = hn::Sub(t[w], of(0, w));
  MH_UNROLL for (int w = 0; w < n; ++w) p[w] = of(6, w);
  MH_UNROLL for (int k = 5; k > 0; --k) {
    MH_UNROLL for (int w = 0; w < n; ++w) p[w] = hn::MulAdd(p[w], t[w], of(k, w));
  }
  MH_UNROLL for (int w = 0; w < n; ++w) x[w] = hn::Mul(hn::CopySign(p[w], x[w]), factor);
#else
  const DI di;
  auto largest = hn::Zero(di);  // as whole numbers, which order positive floats and are never NaN
  MH_UNROLL for (int w = 0; w < n; ++w) largest = hn::Max(largest, hn::BitCast(di, hn::Abs(x[w])));
  if (HWY_LIKELY(hn::AllFalse(di, hn::Gt(largest, hn::BitCast(di, hn::Set(d, kTanhSmall)))))) {
    MH_UNROLL for (int w = 0; w < n; ++w) x[w] = tanh_small(d, x[w], factor);
  } else {
    MH_UNROLL for (int w = 0; w < n; ++w) x[w] = tanh_vector(d, x[w], factor);
  }
#endif
}
HWY_INLINE VF capped(VF x, float cap) {
  VF row[1] = {x};
  cap_row(row, cap);
  return row[0];
}
/// The same for a multiple of kLanes numbers in memory.
HWY_NOINLINE inline void cap_numbers(float* HWY_RESTRICT x, int64_t size, float cap) {
  const DF d;
  constexpr int kTogether = 4;
  int64_t left = size / kLanes;
  for (; left >= kTogether; left -= kTogether, x += kTogether * kLanes) {
    VF row[kTogether];
    MH_UNROLL for (int w = 0; w < kTogether; ++w) row[w] = hn::Load(d, x + w * kLanes);
    cap_row(row, cap);
    MH_UNROLL for (int w = 0; w < kTogether; ++w) hn::Store(row[w], d, x + w * kLanes);
  }
  for (; left > 0; --left, x += kLanes) hn::Store(capped(hn::Load(d, x), cap), d, x);
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
