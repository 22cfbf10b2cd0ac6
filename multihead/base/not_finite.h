// Counts infinities and NaN among numbers as a file stores them, without converting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mh {

/// The exponent of an IEEE number; a number is finite unless all these bits are set.
inline constexpr uint32_t kFloat32Exponent = 0x7F80'0000;
inline constexpr uint16_t kFloat16Exponent = 0x7C00, kBFloat16Exponent = 0x7F80;

/// Of `count` numbers, the first at `at` and each `stride` bytes behind the one before. They need no alignment.
template <class Bits>
int64_t count_not_finite(const std::byte* at, int64_t count, Bits exponent, int64_t stride = sizeof(Bits)) {
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, at + i * stride, sizeof bits);
    bad += (bits & exponent) == exponent ? 1 : 0;
  }
  return bad;
}

}  // namespace mh
