#include "multihead/kernels/byte_rows.h"

#include <bit>

#include "multihead/kernels/integer_scale.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/byte_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// At most the lanes of 16 numbers, so that a group's sums are those of whole vectors.
using RowTag = hn::CappedTag<float, 16>;
using RowIntegers = hn::RebindToSigned<RowTag>;

/// max |x_k| of a group, as bits, whose order is that of magnitudes: infinity and NaN are above all others.
HWY_INLINE uint32_t largest_bits(const float* x) {
  const RowTag d;
  const hn::RebindToUnsigned<RowTag> bits;
  auto most = hn::Zero(bits);
  for (int64_t k = 0; k < kByteGroup; k += static_cast<int64_t>(hn::Lanes(d)))
    most = hn::Max(most, hn::BitCast(bits, hn::Abs(hn::LoadU(d, x + k))));
  return hn::GetLane(hn::MaxOfLanes(bits, most));
}

/// A group as integers, and the sums of its halves.
template <bool kWide>
HWY_INLINE void fill_group(const float* x, float inverse, int8_t* low, int8_t* high, int32_t* sums) {
  const RowTag d;
  const RowIntegers integers;
  const hn::Rebind<int8_t, RowTag> bytes;
  const auto factor = hn::Set(d, inverse);
  for (int64_t half = 0; half < 2; ++half) {
    auto sum = hn::Zero(integers);
    for (int64_t n = 0; n < kByteGroup / 2; n += static_cast<int64_t>(hn::Lanes(d))) {
      const int64_t k = half * kByteGroup / 2 + n;
      const auto a = hn::NearestInt(hn::Mul(hn::LoadU(d, x + k), factor));
      sum = hn::Add(sum, a);
      if constexpr (kWide) {
        const auto upper = hn::ShiftRight<8>(hn::Add(a, hn::Set(integers, 128)));
        hn::StoreU(hn::DemoteTo(bytes, upper), bytes, high + k);
        hn::StoreU(hn::DemoteTo(bytes, hn::Sub(a, hn::ShiftLeft<8>(upper))), bytes, low + k);
      } else {
        hn::StoreU(hn::DemoteTo(bytes, a), bytes, low + k);
      }
    }
    sums[half] = hn::GetLane(hn::SumOfLanes(integers, sum));
  }
}

}  // namespace

void fill_rows(const ConstMatrixView& a, WideGroups wide, const ByteRows& to, int64_t begin, int64_t end) {
  const int64_t groups = to.depth / kByteGroup;
  for (int64_t r = begin; r < end; ++r) {
    float* const scales = to.scale + r * groups;  // until they are made: the largest magnitudes
    double squares = 0;
    for (int64_t g = 0; g < groups; ++g) {
      const float largest = std::bit_cast<float>(largest_bits(a.row(r) + g * kByteGroup));
      scales[g] = largest;
      squares += static_cast<double>(largest) * largest;
    }
    // Where a group is not finite the bound is not, and no group is wide.
    const double bound = wide == WideGroups::kAll ? -1 : 2 * squares / static_cast<double>(groups);
    for (int64_t g = 0; g < groups; ++g) {
      const float* const x = a.row(r) + g * kByteGroup;
      const int64_t at = r * to.depth + g * kByteGroup;
      const float largest = scales[g];
      const IntegerScale narrow(largest, 127);
      const bool is_wide = narrow.inverse != 0 && static_cast<double>(largest) * largest > bound;
      const IntegerScale scale = is_wide ? IntegerScale(largest, 32512) : narrow;
      // Not-a-number times 0 would not be an integer, so such groups are 0 times a scale that is not a number.
      HWY_ALIGN static constexpr float kZeros[kByteGroup] = {};
      const float* const from = scale.inverse != 0 ? x : kZeros;
      int32_t* const sums = to.sum + 2 * (r * groups + g);
      is_wide ? fill_group<true>(from, scale.inverse, to.low + at, to.high + at, sums)
              : fill_group<false>(from, scale.inverse, to.low + at, nullptr, sums);
      to.wide[r * groups + g] = is_wide ? 1 : 0;
      scales[g] = scale.scale;
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(fill_rows);

ByteRows ByteRows::rows_between(int64_t begin, int64_t end) const {
  MH_ASSERT(0 <= begin && begin <= end && end <= rows);
  const int64_t groups = depth / kByteGroup;
  return {.rows = end - begin,
          .depth = depth,
          .low = low + begin * depth,
          .high = high + begin * depth,
          .scale = scale + begin * groups,
          .sum = sum + begin * groups * 2,
          .wide = wide + begin * groups};
}

int64_t byte_rows_bytes(int64_t rows, int64_t depth) {
  return rows * (2 * depth + depth / kByteGroup * 13);
}

ByteRows place_byte_rows(int64_t rows, int64_t depth, std::byte* memory) {
  MH_ASSERT(depth % kByteGroup == 0);
  const int64_t groups = rows * (depth / kByteGroup);
  std::byte* const bytes = memory + groups * 12;
  return {.rows = rows,
          .depth = depth,
          .low = reinterpret_cast<int8_t*>(bytes),
          .high = reinterpret_cast<int8_t*>(bytes + rows * depth),
          .scale = reinterpret_cast<float*>(memory),
          .sum = reinterpret_cast<int32_t*>(memory + groups * 4),
          .wide = reinterpret_cast<uint8_t*>(bytes + 2 * rows * depth)};
}

void fill_byte_rows(ConstMatrixView a, WideGroups wide, const ByteRows& to, int64_t begin, int64_t end) {
  MH_ASSERT(a.rows == to.rows && a.cols == to.depth);
  HWY_DYNAMIC_DISPATCH(fill_rows)(a, wide, to, begin, end);
}

}  // namespace mh
#endif
