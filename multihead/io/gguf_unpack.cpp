#include "multihead/io/gguf_unpack.h"

#include <bit>
#include <cstring>

#include "multihead/base/block_parts.h"

namespace mh {
namespace {

constexpr int kBlock = 32, kHalf = kBlock / 2;

void unpack_table(const std::byte* at, const int8_t (&table)[16], float scale, float* out) {
  for (int j = 0; j < kHalf; ++j) {
    const auto both = std::to_integer<uint32_t>(at[j]);
    out[j] = static_cast<float>(table[both & 15u]) * scale;
    out[j + kHalf] = static_cast<float>(table[both >> 4]) * scale;
  }
}

}  // namespace

void unpack_block(BlockType type, const std::byte* at, float* out) {
  const BlockLayout layout = block_layout(type);
  const BlockParts parts(type, at);
  const float d = from_float16(parts.d), m = from_float16(parts.m);
  for (int64_t part = 0, i = 0; part < layout.parts(); ++part) {
    const float scale = d * parts.s[part];
    const float least = layout.has_least ? m * parts.t[part] : scale * static_cast<float>(-layout.offset);
    for (const int64_t end = i + layout.part; i < end; ++i) out[i] = parts.q[i] * scale + least;
  }
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

void unpack_iq4_xs(const std::byte* at, float* out) {
  const std::byte *const low = at + 4, *const numbers = at + 8;
  const float d = float16_at(at);
  uint16_t high = 0;
  std::memcpy(&high, at + 2, sizeof high);
  for (int part = 0; part < 8; ++part, out += 32) {
    const uint32_t s =
        (std::to_integer<uint32_t>(low[part / 2]) >> part % 2 * 4 & 15u) | (high >> 2 * part & 3u) << 4;
    const float scale = d * static_cast<float>(static_cast<int>(s) - 32);
    for (int i = 0; i < 16; ++i) {
      const uint32_t both = std::to_integer<uint32_t>(numbers[16 * part + i]);
      out[i] = scale * static_cast<float>(kIq4Table[both & 15u]);
      out[i + 16] = scale * static_cast<float>(kIq4Table[both >> 4]);
    }
  }
}

}  // namespace mh
