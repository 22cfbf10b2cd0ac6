// Part of the attention kernel: blocks of 16 queries, one in each lane of a vector.
//
// Scores are computed transposed, S^T = K Q^T: a number of a key is broadcast and multiplied with 16
// queries. So maxima and sums never go across lanes, and keys need no packing: they are read by row
// wherever they lie. Only the block's queries are transposed, once. A strip holds S^T (then P^T) as
// [key][16].
#if defined(MULTIHEAD_KERNELS_ATTENTION_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_LANES_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_LANES_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#ifndef MH_UNROLL
#define MH_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
using DU = hn::ScalableTag<uint32_t>;
using DH = hn::Rebind<uint16_t, DF>;
using VF = hn::Vec<DF>;
using MF = hn::Mask<DF>;

constexpr int kBlock = 16;  // queries in a block
constexpr int kLanes = static_cast<int>(hn::MaxLanes(DF()));
constexpr int kVectors = kBlock / kLanes;  // vectors that hold a block
constexpr float kLog2e = 1.44269504088896341f;
constexpr float kLn2 = 0.693147180559945309f;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// a b + c with the rounding of a lane of MulAdd, whatever the compiler makes of scalars.
HWY_INLINE float multiply_add(float a, float b, float c) {
  const hn::CappedTag<float, 1> d;
  return hn::GetLane(hn::MulAdd(hn::Set(d, a), hn::Set(d, b), hn::Set(d, c)));
}

/// Loads the first n <= kLanes numbers at p and reads nothing after them.
HWY_INLINE VF load_first(const float* p, int n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(DF(), static_cast<size_t>(n)), DF(), p);
#else
  if (n == kLanes) return hn::LoadU(DF(), p);
  HWY_ALIGN float part[kLanes] = {};
  for (int i = 0; i < n; ++i) part[i] = p[i];
  return hn::Load(DF(), part);
#endif
}
/// The same of bfloat16, which is the upper half of a float32.
HWY_INLINE VF widened(hn::Vec<DH> halves) {
  return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), halves)));
}
HWY_INLINE VF load_all(const float* p) {
  return hn::LoadU(DF(), p);
}
HWY_INLINE VF load_all(const uint16_t* p) {
  return widened(hn::LoadU(DH(), p));
}
HWY_INLINE VF load_first(const uint16_t* p, int n) {
  if (n == kLanes) return load_all(p);
  HWY_ALIGN uint16_t part[kLanes] = {};
  for (int i = 0; i < n; ++i) part[i] = p[i];
  return load_all(part);
}
HWY_INLINE void store_first(VF v, float* p, int n) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(DF(), static_cast<size_t>(n)), DF(), p);
#else
  if (n == kLanes) return hn::StoreU(v, DF(), p);
  HWY_ALIGN float part[kLanes];
  hn::Store(v, DF(), part);
  for (int i = 0; i < n; ++i) p[i] = part[i];
#endif
}

/// Vector w of a block's 16 mask bits.
HWY_INLINE MF block_mask(const uint16_t& bits, int w) {
  if constexpr (kLanes >= 8) {
    uint8_t bytes[8] = {};  // LoadMaskBits may look at eight
    std::memcpy(bytes, reinterpret_cast<const uint8_t*>(&bits) + w, kLanes / 8);
    return hn::LoadMaskBits(DF(), bytes);
  } else {
    const uint8_t bytes[8] = {static_cast<uint8_t>((bits >> (w * kLanes)) & ((1 << kLanes) - 1))};
    return hn::LoadMaskBits(DF(), bytes);
  }
}
HWY_INLINE uint16_t mask_bits(MF mask, int w) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(DF(), mask, bytes);
  return static_cast<uint16_t>((kLanes == 16 ? bytes[0] | bytes[1] << 8 : bytes[0]) << (w * kLanes));
}

/// 2^x to 1e-7 for x <= 127; 0 for -infinity and wherever 2^x is below the normal numbers; NaN for NaN. 2^0
/// is 1. The polynomial is minimax on [-1/2, 1/2] among those with constant term 1 (relative error 9e-8).
HWY_INLINE VF exp2_vector(VF x) {
  const DF d;
#if HWY_TARGET == HWY_AVX3
  const VF n{_mm512_roundscale_ps(x.raw, 0)};
  const VF r{_mm512_reduce_ps(x.raw, 0)};  // x - n, and 0 for an infinity
#else
  const auto tiny = hn::Lt(x, hn::Set(d, -126.0f));
  x = hn::IfThenElse(tiny, hn::Set(d, -126.0f), x);
  const auto whole = hn::NearestInt(x);
  const auto r = hn::Sub(x, hn::ConvertTo(d, whole));
#endif
  auto p = hn::Set(d, 0x1.5bba14p-10f);
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.3cea88p-7f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.c6b752p-5f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.ebf9bcp-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.62e42ap-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
#if HWY_TARGET == HWY_AVX3
  return VF{_mm512_scalef_ps(p.raw, n.raw)};
#else
  const auto scaled = hn::Add(hn::BitCast(DI(), p), hn::ShiftLeft<23>(whole));  // a NaN's `whole` shifts to 0
  return hn::IfThenZeroElse(tiny, hn::BitCast(d, scaled));
#endif
}

/// log2 of normal positive numbers, -infinity for 0, NaN for NaN: with m in [sqrt(1/2), sqrt(2)) and
/// t = (m - 1) / (m + 1), ln m = 2 (t + t^3 / 3 + t^5 / 5 + ...).
HWY_INLINE VF log2_vector(VF x) {
  const DF d;
  const DI di;
  const auto bits = hn::BitCast(di, x);
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const auto t = hn::Div(hn::Sub(m, hn::Set(d, 1.0f)), hn::Add(m, hn::Set(d, 1.0f)));
  const auto t2 = hn::Mul(t, t);
  auto p = hn::Set(d, 2 * kLog2e / 9);
  p = hn::MulAdd(p, t2, hn::Set(d, 2 * kLog2e / 7));
  p = hn::MulAdd(p, t2, hn::Set(d, 2 * kLog2e / 5));
  p = hn::MulAdd(p, t2, hn::Set(d, 2 * kLog2e / 3));
  p = hn::MulAdd(p, t2, hn::Set(d, 2 * kLog2e));
  const auto result = hn::MulAdd(p, t, hn::Add(hn::ConvertTo(d, e), hn::Sub(x, x)));  // x - x: NaN stays
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, kMinusInfinity), result);
}

/// Four numbers of each of kLanes / 4 rows that lie four apart, side by side.
HWY_INLINE VF load_quads(const float* const* rows, int64_t c) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(DF(), rows[0][c]);  // not called
#elif HWY_TARGET == HWY_AVX3
  __m512 v = _mm512_broadcast_f32x4(_mm_loadu_ps(rows[0] + c));
  v = _mm512_mask_broadcast_f32x4(v, 0x00F0, _mm_loadu_ps(rows[4] + c));
  v = _mm512_mask_broadcast_f32x4(v, 0x0F00, _mm_loadu_ps(rows[8] + c));
  v = _mm512_mask_broadcast_f32x4(v, 0xF000, _mm_loadu_ps(rows[12] + c));
  return VF{v};
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<DF> half;
  return hn::Combine(DF(), hn::LoadU(half, rows[4] + c), hn::LoadU(half, rows[0] + c));
#else
  return hn::LoadU(DF(), rows[0] + c);
#endif
}

/// Numbers c ... c + 3 of kLanes rows as four vectors with the rows in the lanes.
HWY_INLINE void load_columns(const float* const* rows, int64_t c, VF* column) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) column[i] = hn::Set(DF(), rows[0][c + i]);
#else
  const DF d;
  const VF r0 = load_quads(rows, c), r1 = load_quads(rows + 1, c);
  const VF r2 = load_quads(rows + 2, c), r3 = load_quads(rows + 3, c);
  const VF a = hn::InterleaveLower(d, r0, r2), b = hn::InterleaveLower(d, r1, r3);
  const VF e = hn::InterleaveUpper(d, r0, r2), f = hn::InterleaveUpper(d, r1, r3);
  column[0] = hn::InterleaveLower(d, a, b);
  column[1] = hn::InterleaveUpper(d, a, b);
  column[2] = hn::InterleaveLower(d, e, f);
  column[3] = hn::InterleaveUpper(d, e, f);
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
