#include "multihead/kernels/channel_rows.h"

#include <cstring>
#include <limits>

#include "multihead/base/aligned.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/channel_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using NumberTag = hn::ScalableTag<float>;
using BitsTag = hn::RebindToUnsigned<NumberTag>;
using IntegerTag = hn::RebindToSigned<NumberTag>;
using Number = hn::Vec<NumberTag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(NumberTag()));

#if HWY_TARGET != HWY_SCALAR
/// The number at each lane is that of the lane kDistance away.
template <int64_t kDistance>
HWY_INLINE Number swapped(Number v) {
  if constexpr (kDistance == 1) return hn::Reverse2(NumberTag(), v);
  if constexpr (kDistance == 2) return hn::Shuffle1032(v);
  if constexpr (kDistance > 2 && 2 * kDistance == kLanes) return hn::ConcatLowerUpper(NumberTag(), v, v);
  if constexpr (kDistance > 2 && 2 * kDistance < kLanes) return hn::SwapAdjacentBlocks(v);
}

/// The steps at distances from kDistance on within a vector: q + 1 p where p was, and p + (-1) q where q was, which round as the sum and the
/// difference do.
template <int64_t kDistance = 1>
HWY_INLINE Number rotate_lanes(Number v) {
  if constexpr (kDistance < kLanes) {
    const NumberTag d;
    const auto upper =
        hn::Ne(hn::And(hn::Iota(IntegerTag(), 0), hn::Set(IntegerTag(), kDistance)), hn::Zero(IntegerTag()));
    const Number sign = hn::IfThenElse(hn::RebindMask(d, upper), hn::Set(d, -1.0f), hn::Set(d, 1.0f));
    return rotate_lanes<2 * kDistance>(hn::MulAdd(v, sign, swapped<kDistance>(v)));
  } else {
    return v;
  }
}
#endif

/// z = x R for kCount numbers together.
template <int64_t kCount>
HWY_INLINE void rotate(const float* x, float* z, hn::Vec<BitsTag>& largest) {
  constexpr int kVectors = static_cast<int>(kCount / kLanes);
  const NumberTag d;
  Number v[kVectors];
  HWY_UNROLL(8)
  for (int i = 0; i < kVectors; ++i) {
    v[i] = hn::LoadU(d, x + i * kLanes);
#if HWY_TARGET != HWY_SCALAR
    v[i] = rotate_lanes(v[i]);
#endif
  }
  HWY_UNROLL(8)
  for (int stride = 1; stride < kVectors; stride *= 2) {
    HWY_UNROLL(8)
    for (int i = 0; i < kVectors; ++i) {
      if ((i & stride) != 0) continue;
      const Number p = v[i], q = v[i + stride];
      v[i] = hn::Add(p, q);
      v[i + stride] = hn::Sub(p, q);
    }
  }
  HWY_UNROLL(8)
  for (int i = 0; i < kVectors; ++i) {
    if constexpr (kCount < kRotation) v[i] = hn::Mul(v[i], hn::Set(d, rotation_factor(kCount)));
    largest = hn::Max(largest, hn::BitCast(BitsTag(), hn::Abs(v[i])));
    hn::StoreU(v[i], d, z + i * kLanes);
  }
}

/// The same for less than a vector.
template <int64_t kCount>
HWY_INLINE void rotate_few(const float* x, float* z, hn::Vec<BitsTag>& largest) {
  std::copy_n(x, kCount, z);
  for (int64_t distance = 1; distance < kCount; distance *= 2) {
    for (int64_t i = 0; i < kCount; ++i) {
      if ((i & distance) != 0) continue;
      const float p = z[i], q = z[i + distance];
      z[i] = p + q;
      z[i + distance] = p - q;
    }
  }
  for (int64_t i = 0; i < kCount; ++i) {
    z[i] *= rotation_factor(kCount);
    largest = hn::Max(largest, hn::Set(BitsTag(), std::bit_cast<uint32_t>(z[i]) & 0x7FFFFFFFu));
  }
}

/// The same for `count` numbers, less than 2 kMost: a matrix for each of its bits.
template <int64_t kMost>
HWY_INLINE void rotate_rest(const float* x, int64_t count, float* z, hn::Vec<BitsTag>& largest) {
  if constexpr (kMost > 0) {
    if ((count & kMost) != 0) {
      if constexpr (kMost >= kLanes) {
        rotate<kMost>(x, z, largest);
      } else {
        rotate_few<kMost>(x, z, largest);
      }
      x += kMost;
      z += kMost;
    }
    rotate_rest<kMost / 2>(x, count, z, largest);
  }
}

/// z = x R; the bits of the largest magnitude, which have the order of magnitudes.
HWY_INLINE uint32_t rotate_row(const float* x, int64_t count, float* z) {
  auto largest = hn::Zero(BitsTag());
  int64_t k = 0;
  for (; k + kRotation <= count; k += kRotation) rotate<kRotation>(x + k, z + k, largest);
  rotate_rest<kRotation / 2>(x + k, count - k, z + k, largest);
  return hn::GetLane(hn::MaxOfLanes(BitsTag(), largest));
}

/// low = round(z inverse) for whole vectors, of which the last may have fewer numbers; returns the sum.
HWY_INLINE int32_t round_row(const float* z, float inverse, int64_t depth, int8_t* low) {
  const NumberTag d;
  const hn::Rebind<uint8_t, NumberTag> bytes;
  // The float32 numbers from 2^23 to 2^24 are the integers, so that to add this one is to round, halves to the even one, and the
  // lowest bits of the sum are those of the integer.
  constexpr float kRound = 0x1.8p23f;
  constexpr auto kRoundBits = std::bit_cast<uint32_t>(kRound);
  const Number factor = hn::Set(d, inverse), round = hn::Set(d, kRound);
  auto sum = hn::Zero(BitsTag());
  const auto rounded = [&](int64_t k) HWY_ATTR {
    // + 0, lest a compiler makes one instruction, which rounds once, of the product and the sum.
    const Number scaled = hn::MulAdd(hn::LoadU(d, z + k), factor, hn::Zero(d));
    const auto a = hn::BitCast(BitsTag(), hn::Add(scaled, round));
    sum = hn::Add(sum, a);
    return hn::TruncateTo(bytes, a);
  };
  auto* const to = reinterpret_cast<uint8_t*>(low);
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) hn::StoreU(rounded(k), bytes, to + k);
  if (k < depth) {
    HWY_ALIGN uint8_t last[kLanes];
    hn::Store(rounded(k), bytes, last);
    std::memcpy(low + k, last, static_cast<size_t>(depth - k));
    k += kLanes;
  }
  const uint32_t all = hn::GetLane(hn::SumOfLanes(BitsTag(), sum));
  return static_cast<int32_t>(all - static_cast<uint32_t>(k) * kRoundBits);
}

}  // namespace

void fill_channels(const ConstMatrixView& x, const ChannelRows& to, int64_t begin, int64_t end) {
  thread_local AlignedBuffer<float> memory;
  const int64_t whole = (to.depth + kLanes - 1) / kLanes * kLanes;
  float* const z = memory.get(whole);
  std::fill(z + x.cols, z + whole, 0.0f);
  for (int64_t r = begin; r < end; ++r) {
    const IntegerScale scale(std::bit_cast<float>(rotate_row(x.row(r), x.cols, z)), 127);
    int8_t* const low = to.low + r * to.depth;
    to.scale[r] = scale.scale;
    to.sum[r] = 0;
    // Not-a-number times 0 would not be an integer.
    if (scale.inverse == 0) {
      std::fill_n(low, to.depth, int8_t{0});
    } else {
      to.sum[r] = round_row(z, scale.inverse, to.depth, low);
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(fill_channels);

ChannelRows ChannelRows::rows_between(int64_t begin, int64_t end) const {
  MH_ASSERT(0 <= begin && begin <= end && end <= rows);
  return {.rows = end - begin,
          .depth = depth,
          .low = low + begin * depth,
          .scale = scale + begin,
          .sum = sum + begin};
}

int64_t channel_rows_bytes(int64_t rows, int64_t k) {
  return rows * (8 + channel_depth(k));
}

ChannelRows place_channel_rows(int64_t rows, int64_t k, std::byte* memory) {
  MH_ASSERT(k <= kMostChannelDepth);
  return {.rows = rows,
          .depth = channel_depth(k),
          .low = reinterpret_cast<int8_t*>(memory + rows * 8),
          .scale = reinterpret_cast<float*>(memory),
          .sum = reinterpret_cast<int32_t*>(memory + rows * 4)};
}

void fill_channel_rows(ConstMatrixView x, const ChannelRows& to, int64_t begin, int64_t end) {
  MH_ASSERT(x.rows == to.rows && channel_depth(x.cols) == to.depth);
  HWY_DYNAMIC_DISPATCH(fill_channels)(x, to, begin, end);
}

}  // namespace mh
#endif
