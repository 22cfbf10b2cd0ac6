// Sums of products of bytes: in each lane of 32 bits  sum += u_0 s_0 + u_1 s_1 + u_2 s_2 + u_3 s_3, u unsigned, s signed, exactly.
// Per-target code: include after highway.h inside a foreach_target source.

#if defined(MULTIHEAD_KERNELS_DOT_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_DOT_BYTES_INL_H_
#undef MULTIHEAD_KERNELS_DOT_BYTES_INL_H_
#else
#define MULTIHEAD_KERNELS_DOT_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
inline constexpr bool kHasPairs = true;
#else
inline constexpr bool kHasPairs = false;
#endif

using DotTag = hwy::HWY_NAMESPACE::ScalableTag<int32_t>;
using DotVector = hwy::HWY_NAMESPACE::Vec<DotTag>;

/// Four signed bytes, the same in every lane, as add_dot_of_bytes() reads them. kDots: the kernel has an instruction for these
/// sums (has_byte_dots() of kernels/product_kernels.h). kBits: of the unsigned bytes.
template <bool kDots, int kBits>
struct SignedFour {
  /// Two products of 7 and 8 bits fit 16.
  static constexpr bool kWhole = kHasPairs && (kDots || kBits <= 7);
  /// All four; or bytes 0 and 2, and 1 and 3, as numbers of 16 bits; or each as a number of 32.
  static constexpr int kVectors = kWhole ? 1 : kHasPairs ? 2 : 4;
  DotVector bytes[kVectors];

  HWY_INLINE explicit SignedFour(const int8_t* at) {
    namespace hn = hwy::HWY_NAMESPACE;
    const DotTag d;
    if constexpr (kHasPairs) {
      int32_t four = 0;
      hwy::CopyBytes<4>(at, &four);
      bytes[0] = hn::Set(d, four);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
      if constexpr (!kWhole) {
        const hn::Repartition<int16_t, DotTag> halves;
        bytes[1] = hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(halves, bytes[0])));
        bytes[0] = hn::BitCast(d, hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(halves, bytes[0]))));
      }
#endif
    } else {
      for (int i = 0; i < kVectors; ++i) bytes[i] = hn::Set(d, at[i]);
    }
  }
};

#if HWY_TARGET == HWY_AVX3
/// Pairs of numbers of 16 bits: in each lane the sum of their two products.
HWY_INLINE DotVector dot_of_pairs(DotVector a, DotVector b) {
  return DotVector{_mm512_madd_epi16(a.raw, b.raw)};
}
HWY_INLINE DotVector saturated_pairs(DotVector u, DotVector s) {
  return DotVector{_mm512_maddubs_epi16(u.raw, s.raw)};
}
// Highway has no target with VNNI that this library is compiled for.
HWY_INLINE DotVector add_dot(DotVector sum, DotVector u, DotVector s) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(u.raw), "v"(s.raw));
  return sum;
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE DotVector dot_of_pairs(DotVector a, DotVector b) {
  return DotVector{_mm256_madd_epi16(a.raw, b.raw)};
}
HWY_INLINE DotVector saturated_pairs(DotVector u, DotVector s) {
  return DotVector{_mm256_maddubs_epi16(u.raw, s.raw)};
}
HWY_INLINE DotVector add_dot(DotVector sum, DotVector u, DotVector s) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(u.raw), "x"(s.raw));
  return sum;
}
#endif

template <bool kDots, int kBits>
HWY_INLINE DotVector add_dot_of_bytes(DotVector sum, DotVector u, const SignedFour<kDots, kBits>& s) {
  namespace hn = hwy::HWY_NAMESPACE;
  const DotTag d;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if constexpr (kDots) {
    return add_dot(sum, u, s.bytes[0]);
  } else if constexpr (SignedFour<kDots, kBits>::kWhole) {
    return hn::Add(sum, dot_of_pairs(saturated_pairs(u, s.bytes[0]), hn::Set(d, 0x00010001)));
  } else {
    const hn::Repartition<uint16_t, DotTag> halves;
    const auto odd = hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(halves, u)));
    sum = hn::Add(sum, dot_of_pairs(hn::And(u, hn::Set(d, 0x00FF00FF)), s.bytes[0]));
    return hn::Add(sum, dot_of_pairs(odd, s.bytes[1]));
  }
#else
  const auto byte = hn::Set(d, 255);
  sum = hn::Add(sum, hn::Mul(hn::And(u, byte), s.bytes[0]));
  sum = hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<8>(u), byte), s.bytes[1]));
  sum = hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<16>(u), byte), s.bytes[2]));
  return hn::Add(sum, hn::Mul(hn::And(hn::ShiftRight<24>(u), byte), s.bytes[3]));
#endif
}

}  // namespace
}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
