// Blocks of 256 numbers (gguf_unpack.h has their layouts).
#include <cstring>

#include "multihead/io/gguf_unpack.h"

namespace mh {
namespace {

constexpr int kSuperBlock = 256, kHalfSuperBlock = kSuperBlock / 2;

uint32_t byte_at(const std::byte* at, int i) {
  return std::to_integer<uint32_t>(at[i]);
}

/// The scale and the least of one of the eight parts of Q4_K and Q5_K, 6 bits each: those of the first four parts fill the lower
/// bits of 8 bytes; of the others 4 bits fill 4 bytes, and 2 bits the upper ones of those 8.
struct PartScale {
  uint32_t scale, least;

  PartScale(const std::byte* packed, int part) {
    const auto byte = [&](int i) { return byte_at(packed, i); };
    scale = part < 4 ? byte(part) & 63u : (byte(part + 4) & 15u) | (byte(part - 4) >> 6) << 4;
    least = part < 4 ? byte(part + 4) & 63u : byte(part + 4) >> 4 | (byte(part) >> 6) << 4;
  }
};

/// Q4_K, and where there are bytes with fifth bits Q5_K: 32 numbers a part; two parts share 32 bytes.
void unpack_parts_of_32(const std::byte* at, const std::byte* fifth, const std::byte* numbers, float* out) {
  const float d = float16_at(at), least = float16_at(at + 2);
  for (int part = 0; part < 8; ++part, out += 32) {
    const PartScale packed(at + 4, part);
    const float scale = d * static_cast<float>(packed.scale), zero = least * static_cast<float>(packed.least);
    const std::byte* const pairs = numbers + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const uint32_t top = fifth == nullptr ? 0 : (byte_at(fifth, i) >> part & 1u) << 4;
      out[i] = scale * static_cast<float>((byte_at(pairs, i) >> shift & 15u) | top) - zero;
    }
  }
}

}  // namespace

void unpack_q2_k(const std::byte* at, float* out) {
  const std::byte* const numbers = at + 16;
  const float d = float16_at(at + 80), least = float16_at(at + 82);
  for (int part = 0; part < 16; ++part, out += 16) {
    const uint32_t packed = byte_at(at, part);
    const float scale = d * static_cast<float>(packed & 15u), zero = least * static_cast<float>(packed >> 4);
    const std::byte* const quads = numbers + part / 8 * 32 + part % 2 * 16;
    const int shift = part % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) out[i] = scale * static_cast<float>(byte_at(quads, i) >> shift & 3u) - zero;
  }
}

void unpack_q3_k(const std::byte* at, float* out) {
  const std::byte *const third = at, *const numbers = at + 32, *const scales = at + 96;
  const float d = float16_at(at + 108);
  for (int part = 0; part < 16; ++part, out += 16) {
    const uint32_t low = byte_at(scales, part % 8) >> part / 8 * 4 & 15u;
    const uint32_t high = byte_at(scales, 8 + part % 4) >> part / 4 * 2 & 3u;
    const float scale = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    const std::byte* const quads = numbers + part / 8 * 32 + part % 2 * 16;
    const std::byte* const bits = third + part % 2 * 16;
    const int shift = part % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) {
      const uint32_t q = (byte_at(quads, i) >> shift & 3u) | (byte_at(bits, i) >> part / 2 & 1u) << 2;
      out[i] = scale * static_cast<float>(static_cast<int>(q) - 4);
    }
  }
}

void unpack_q4_k(const std::byte* at, float* out) {
  unpack_parts_of_32(at, nullptr, at + 16, out);
}

void unpack_q5_k(const std::byte* at, float* out) {
  unpack_parts_of_32(at, at + 16, at + 48, out);
}

void unpack_q6_k(const std::byte* at, float* out) {
  const std::byte *low = at, *high = at + 128, *scales = at + 192;
  const float d = float16_at(at + 208);
  for (int half = 0; half < 2; ++half, low += 64, high += 32, scales += 8, out += kHalfSuperBlock) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        const uint32_t four = byte_at(low, quarter % 2 * 32 + i) >> quarter / 2 * 4 & 15u;
        const uint32_t q = four | (byte_at(high, i) >> 2 * quarter & 3u) << 4;
        const auto scale = std::to_integer<int8_t>(scales[2 * quarter + i / 16]);
        out[32 * quarter + i] = d * static_cast<float>(scale) * static_cast<float>(static_cast<int>(q) - 32);
      }
    }
  }
}

void unpack_iq4_xs(const std::byte* at, float* out) {
  const std::byte *const low = at + 4, *const numbers = at + 8;
  const float d = float16_at(at);
  uint16_t high = 0;
  std::memcpy(&high, at + 2, sizeof high);
  for (int part = 0; part < 8; ++part, out += 32) {
    const uint32_t s = (byte_at(low, part / 2) >> part % 2 * 4 & 15u) | (high >> 2 * part & 3u) << 4;
    const float scale = d * static_cast<float>(static_cast<int>(s) - 32);
    for (int i = 0; i < 16; ++i) {
      const uint32_t both = byte_at(numbers, 16 * part + i);
      out[i] = scale * static_cast<float>(kIq4Table[both & 15u]);
      out[i + 16] = scale * static_cast<float>(kIq4Table[both >> 4]);
    }
  }
}

}  // namespace mh
