// A block of a panel (kernels/block_panels.h) in registers: its scales, its integers as bytes, and the float32 numbers that
// they stand for. Per-target code: include after highway.h inside a foreach_target source.

#if defined(MULTIHEAD_KERNELS_BLOCK_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_BLOCK_PANEL_INL_H_
#undef MULTIHEAD_KERNELS_BLOCK_PANEL_INL_H_
#else
#define MULTIHEAD_KERNELS_BLOCK_PANEL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "multihead/base/block_matrix.h"
#include "multihead/kernels/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

using Vector = hn::Vec<FloatTag>;
using IntegerTag = hn::RebindToSigned<FloatTag>;
using Integers = hn::Vec<IntegerTag>;
using Vectors = Vector[kPanelVectors];

/// bfloat16, where the scale is a power of two beyond float16.
HWY_INLINE void load_powers_of_two(const std::byte* at, Vectors& to) {
  const hn::Rebind<uint16_t, FloatTag> half;
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v) {
    const auto bits =
        hn::PromoteTo(IntegerTag(), hn::LoadU(half, reinterpret_cast<const uint16_t*>(at) + v * kLanes));
    to[v] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(bits));
  }
}

/// Of each byte q below 16 the byte table[q]. REQUIRES: the table lies on 16 bytes.
HWY_INLINE Integers look_up(const int8_t* table, Integers q) {
#if HWY_TARGET == HWY_SCALAR
  uint32_t found = 0;
  for (int i = 0; i < 32; i += 8)
    found |= static_cast<uint32_t>(static_cast<uint8_t>(table[static_cast<uint32_t>(q.raw) >> i & 15u])) << i;
  return Integers(static_cast<int32_t>(found));
#else
  const hn::Repartition<int8_t, IntegerTag> bytes;
  return hn::TableLookupBytes(hn::BitCast(IntegerTag(), hn::LoadDup128(bytes, table)), q);
#endif
}

HWY_INLINE void load_scales(const std::byte* at, Vectors& to) {
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v)
    to[v] =
        hn::PromoteTo(FloatTag(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(at) + v * kLanes));
}

/// kBits bits from bit kFrom on, at bit kTo, of each of so many equal fields of a lane.
template <int kBits, int kFrom, int kTo, int kFields>
HWY_INLINE Integers move_bits(Integers from) {
  static_assert(kFields == 1 || kFields == 4);
  if constexpr (kFrom > kTo) from = hn::ShiftRight<kFrom - kTo>(from);
  if constexpr (kFrom < kTo) from = hn::ShiftLeft<kTo - kFrom>(from);
  constexpr uint32_t kMask = ((1u << kBits) - 1) << kTo;
  return hn::And(from,
                 hn::Set(IntegerTag(), static_cast<int32_t>(kFields == 1 ? kMask : kMask * 0x01010101u)));
}

/// Numbers of so many bits, [numbers * kBits / 32][kPanel] lanes: number k = 4 t + i of a lane lies at bit 8 i + kBits t.
template <int kBits>
struct Plane {
  static constexpr int kInLane = 32 / kBits;

  /// The lanes with k8 + kIn8, those of k8 in their lowest bits. REQUIRES: k8 is a multiple of 8, here and below.
  template <int kIn8>
  HWY_INLINE static Integers lanes(const std::byte* plane, int64_t k8, int v) {
    constexpr int kFurther = kIn8 / kInLane;  // of 8 bits there are two lanes
    const auto* const at = reinterpret_cast<const int32_t*>(plane) + (k8 / kInLane + kFurther) * kPanel;
    const Integers found = hn::LoadU(IntegerTag(), at + v * kLanes);
    if constexpr (kInLane <= 8) return found;
    return hn::ShiftRightSame(found, static_cast<int>(k8 % kInLane / 4 * kBits));
  }
  /// The lowest bit, within its byte, of number k8 + in8.
  static constexpr int bit(int in8) { return in8 % kInLane / 4 * kBits; }

  /// Number k8 + kIn8, at bit kTo of the result.
  template <int kIn8, int kTo>
  HWY_INLINE static Integers number(const std::byte* plane, int64_t k8, int v) {
    return move_bits<kBits, 8 * (kIn8 % 4) + bit(kIn8), kTo, 1>(lanes<kIn8>(plane, k8, v));
  }
  /// Numbers k8 + kIn8 to k8 + kIn8 + 3, a byte each, at bit kTo of the byte. REQUIRES: kIn8 is 0 or 4.
  template <int kIn8, int kTo>
  HWY_INLINE static Integers four(const std::byte* plane, int64_t k8, int v) {
    if constexpr (kBits == 8) return lanes<kIn8>(plane, k8, v);
    return move_bits<kBits, bit(kIn8), kTo, 4>(lanes<kIn8>(plane, k8, v));
  }
};

/// A block of a panel.
template <BlockType kType>
class PanelBlock {
 public:
  static constexpr BlockLayout kLayout = block_layout(kType);
  static constexpr bool kHasValues = kLayout.values != nullptr;
  static constexpr int kAbove = kHasValues ? 128 : 0;  // added to integers with a sign

  HWY_INLINE explicit PanelBlock(const std::byte* at) : at_(at) {}

  /// d s of a part, and where the type has them m t.
  HWY_INLINE void read_scales(int64_t part, Vectors& scale, Vectors& least) const {
    if constexpr (kLayout.has_exponent) {
      load_powers_of_two(at_, scale);
    } else {
      load_scales(at_, scale);
    }
    if constexpr (kLayout.has_least) load_scales(at_ + kLeastAt, least);
    if constexpr (kLayout.parts() == 1) return;
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) {
      scale[v] = hn::Mul(scale[v], part_scale(kPartScaleAt, part, v));
      if constexpr (kLayout.has_least) least[v] = hn::Mul(least[v], part_scale(kPartLeastAt, part, v));
    }
  }
  /// Goes to a part.
  HWY_INLINE void go_to(int64_t part) {
    read_scales(part, scale_, least_);
    if constexpr (kLayout.has_least || kHasValues) return;
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v)
      least_[v] = hn::Mul(scale_[v], hn::Set(FloatTag(), static_cast<float>(-kLayout.offset)));
  }
  /// The numbers of k = k8 + kIn8, k8 a multiple of 8, in the part to which it went.
  template <int kIn8>
  HWY_INLINE void read(int64_t k8, Vectors& numbers) const {
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) {
      auto q = Plane<kLayout.low_bits>::template number<kIn8, 0>(at_ + kLowAt, k8, v);
      if constexpr (kLayout.high_bits > 0)
        q = hn::Or(q, Plane<kHighBits>::template number<kIn8, kLayout.low_bits>(at_ + kHighAt, k8, v));
      if constexpr (kHasValues) {
        q = hn::ShiftRight<24>(hn::ShiftLeft<24>(look_up(kLayout.values, q)));
        numbers[v] = hn::Mul(hn::ConvertTo(FloatTag(), q), scale_[v]);
      } else {
        numbers[v] = hn::MulAdd(hn::ConvertTo(FloatTag(), q), scale_[v], least_[v]);  // the product is exact
      }
    }
  }
  /// The integers v(q) + kAbove, none below 0, of k8 + kIn8 to k8 + kIn8 + 3, in vector v's columns: 4 bytes a lane. REQUIRES:
  /// kIn8 is 0 or 4.
  template <int kIn8>
  HWY_INLINE Integers bytes(int64_t k8, int v) const {
    auto q = Plane<kLayout.low_bits>::template four<kIn8, 0>(at_ + kLowAt, k8, v);
    if constexpr (kLayout.high_bits > 0)
      q = hn::Or(q, Plane<kHighBits>::template four<kIn8, kLayout.low_bits>(at_ + kHighAt, k8, v));
    if constexpr (kHasValues) q = hn::Xor(look_up(kLayout.values, q), hn::Set(IntegerTag(), kHighestBits));
    return q;
  }

 private:
  static constexpr int32_t kHighestBits = static_cast<int32_t>(0x80808080u);  // + 128 for each byte
  static constexpr int kHighBits =
      kLayout.high_bits > 0 ? kLayout.high_bits : 1;  // 1: for types without, unused
  static constexpr int64_t kPartScales = kLayout.parts() > 1 ? kLayout.parts() * kPanel : 0;
  static constexpr int64_t kLeastAt = 2 * kPanel;
  static constexpr int64_t kPartScaleAt = kLeastAt + (kLayout.has_least ? 2 * kPanel : 0);
  static constexpr int64_t kPartLeastAt = kPartScaleAt + kPartScales;
  static constexpr int64_t kLowAt = kPartLeastAt + (kLayout.has_least ? kPartScales : 0);
  static constexpr int64_t kHighAt = kLowAt + kLayout.numbers * kLayout.low_bits / 8 * kPanel;

  HWY_INLINE Vector part_scale(int64_t at, int64_t part, int v) const {
    const hn::Rebind<int8_t, FloatTag> bytes;
    const auto* const scales = reinterpret_cast<const int8_t*>(at_ + at + part * kPanel);
    return hn::ConvertTo(FloatTag(), hn::PromoteTo(IntegerTag(), hn::LoadU(bytes, scales + v * kLanes)));
  }

  const std::byte* at_;
  Vectors scale_, least_;
};

}  // namespace
}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
