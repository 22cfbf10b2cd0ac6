#include "multihead/io/gguf_unpack.h"

#include <bit>
#include <cstring>

namespace mh {
namespace {

constexpr int kBlock = 32, kHalf = kBlock / 2;

/// q * scale + least of 32 numbers of 4 bits.
void unpack_nibbles(const std::byte* at, float scale, float least, float* out) {
  for (int j = 0; j < kHalf; ++j) {
    const auto both = std::to_integer<uint32_t>(at[j]);
    out[j] = static_cast<float>(both & 15u) * scale + least;
    out[j + kHalf] = static_cast<float>(both >> 4) * scale + least;
  }
}

/// The same of 5 bits: 4 bytes of fifth bits, then as above.
void unpack_fives(const std::byte* at, float scale, float least, float* out) {
  uint32_t fifth = 0;
  std::memcpy(&fifth, at, sizeof fifth);
  at += sizeof fifth;
  for (int j = 0; j < kHalf; ++j) {
    const auto both = std::to_integer<uint32_t>(at[j]);
    const uint32_t low = (both & 15u) | (fifth >> j & 1u) << 4;
    const uint32_t high = both >> 4 | (fifth >> (j + kHalf) & 1u) << 4;
    out[j] = static_cast<float>(low) * scale + least;
    out[j + kHalf] = static_cast<float>(high) * scale + least;
  }
}

void unpack_table(const std::byte* at, const int8_t (&table)[16], float scale, float* out) {
  for (int j = 0; j < kHalf; ++j) {
    const auto both = std::to_integer<uint32_t>(at[j]);
    out[j] = static_cast<float>(table[both & 15u]) * scale;
    out[j + kHalf] = static_cast<float>(table[both >> 4]) * scale;
  }
}

}  // namespace

void unpack_q4_0(const std::byte* at, float* out) {
  const float scale = float16_at(at);
  unpack_nibbles(at + 2, scale, -8 * scale, out);
}

void unpack_q4_1(const std::byte* at, float* out) {
  unpack_nibbles(at + 4, float16_at(at), float16_at(at + 2), out);
}

void unpack_q5_0(const std::byte* at, float* out) {
  const float scale = float16_at(at);
  unpack_fives(at + 2, scale, -16 * scale, out);
}

void unpack_q5_1(const std::byte* at, float* out) {
  unpack_fives(at + 4, float16_at(at), float16_at(at + 2), out);
}

void unpack_q8_0(const std::byte* at, float* out) {
  const float scale = float16_at(at);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<float>(std::to_integer<int8_t>(at[2 + i])) * scale;
}

void unpack_iq4_nl(const std::byte* at, float* out) {
  unpack_table(at + 2, kIq4Table, float16_at(at), out);
}

void unpack_mxfp4(const std::byte* at, float* out) {
  // Twice the numbers of a sign, two bits of exponent and one of mantissa.
  constexpr int8_t kTable[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto exponent = std::to_integer<uint32_t>(at[0]);
  // 2^(e - 128), which is subnormal below 2.
  const uint32_t bits = exponent < 2 ? uint32_t{1} << (21 + exponent) : (exponent - 1) << 23;
  unpack_table(at + 1, kTable, std::bit_cast<float>(bits), out);
}

}  // namespace mh
