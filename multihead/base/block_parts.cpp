#include "multihead/base/block_parts.h"

#include <cstring>

#include "multihead/base/stored_matrix.h"

namespace mh {
namespace {

uint32_t byte_at(const std::byte* at, int i) {
  return std::to_integer<uint32_t>(at[i]);
}

uint16_t half_at(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

/// 32 numbers of 4 bits: byte j has q_j in its lower half and q_(j+16) in its upper one.
void take_nibbles(const std::byte* at, uint8_t* q) {
  for (int j = 0; j < 16; ++j) {
    q[j] = static_cast<uint8_t>(byte_at(at, j) & 15u);
    q[j + 16] = static_cast<uint8_t>(byte_at(at, j) >> 4);
  }
}

/// The same with a fifth bit: bit j of the first 4 bytes is that of q_j.
void take_fives(const std::byte* at, uint8_t* q) {
  take_nibbles(at + 4, q);
  for (int j = 0; j < 32; ++j) q[j] |= static_cast<uint8_t>((byte_at(at, j / 8) >> j % 8 & 1u) << 4);
}

/// Q4_K, and where there are bytes with fifth bits Q5_K: eight parts, of which two share 32 bytes. A part has 6 bits of scale and 6
/// of least: those of the first four parts fill the lower bits of 8 bytes; of the others 4 bits fill 4 bytes, and 2 bits the
/// upper ones of those 8.
void take_parts_of_32(const std::byte* packed, const std::byte* fifth, const std::byte* numbers,
                      BlockParts& to) {
  const auto byte = [&](int i) { return byte_at(packed, i); };
  for (int part = 0; part < 8; ++part) {
    const bool first = part < 4;
    const uint32_t s = first ? byte(part) & 63u : (byte(part + 4) & 15u) | (byte(part - 4) >> 6) << 4;
    const uint32_t t = first ? byte(part + 4) & 63u : byte(part + 4) >> 4 | (byte(part) >> 6) << 4;
    to.s[part] = static_cast<int8_t>(s);
    to.t[part] = static_cast<int8_t>(-static_cast<int>(t));
    for (int i = 0; i < 32; ++i) {
      const uint32_t top = fifth == nullptr ? 0 : (byte_at(fifth, i) >> part & 1u) << 4;
      to.q[32 * part + i] =
          static_cast<uint8_t>((byte_at(numbers + part / 2 * 32, i) >> part % 2 * 4 & 15u) | top);
    }
  }
}

/// Where the 2 bits of part p (of 16 numbers) of Q2_K and Q3_K lie: 16 bytes, shifted by so much.
const std::byte* twos_of(const std::byte* numbers, int part) {
  return numbers + part / 8 * 32 + part % 2 * 16;
}
int shift_of(int part) {
  return part % 8 / 2 * 2;
}

void take_q2_k(const std::byte* at, BlockParts& to) {
  for (int part = 0; part < 16; ++part) {
    to.s[part] = static_cast<int8_t>(byte_at(at, part) & 15u);
    to.t[part] = static_cast<int8_t>(-static_cast<int>(byte_at(at, part) >> 4));
    for (int i = 0; i < 16; ++i)
      to.q[16 * part + i] = static_cast<uint8_t>(byte_at(twos_of(at + 16, part), i) >> shift_of(part) & 3u);
  }
  to.d = half_at(at + 80);
  to.m = half_at(at + 82);
}

void take_q3_k(const std::byte* at, BlockParts& to) {
  const std::byte* const scales = at + 96;
  for (int part = 0; part < 16; ++part) {
    const uint32_t low = byte_at(scales, part % 8) >> part / 8 * 4 & 15u;
    const uint32_t high = byte_at(scales, 8 + part % 4) >> part / 4 * 2 & 3u;
    to.s[part] = static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
    for (int i = 0; i < 16; ++i) {
      const uint32_t third = byte_at(at + part % 2 * 16, i) >> part / 2 & 1u;
      const uint32_t two = byte_at(twos_of(at + 32, part), i) >> shift_of(part) & 3u;
      to.q[16 * part + i] = static_cast<uint8_t>(two | third << 2);
    }
  }
  to.d = half_at(at + 108);
}

void take_q6_k(const std::byte* at, BlockParts& to) {
  const std::byte *low = at, *high = at + 128;
  uint8_t* q = to.q;
  for (int half = 0; half < 2; ++half, low += 64, high += 32) {
    for (int quarter = 0; quarter < 4; ++quarter, q += 32) {
      for (int i = 0; i < 32; ++i) {
        const uint32_t four = byte_at(low, quarter % 2 * 32 + i) >> quarter / 2 * 4 & 15u;
        q[i] = static_cast<uint8_t>(four | (byte_at(high, i) >> 2 * quarter & 3u) << 4);
      }
    }
  }
  std::memcpy(to.s, at + 192, sizeof to.s);
  to.d = half_at(at + 208);
}

void take_iq4_xs(const std::byte* at, BlockParts& to) {
  to.d = half_at(at);
  const uint32_t high = half_at(at + 2);
  for (int part = 0; part < 8; ++part) {
    const uint32_t scale = (byte_at(at + 4, part / 2) >> part % 2 * 4 & 15u) | (high >> 2 * part & 3u) << 4;
    to.s[part] = static_cast<int8_t>(static_cast<int>(scale) - 32);
    take_nibbles(at + 8 + 16 * part, to.q + 32 * part);
  }
}

/// 2^(e - 128) as bfloat16, which is subnormal below 2.
uint16_t power_of_two(uint32_t e) {
  return static_cast<uint16_t>(e < 2 ? 1u << (5 + e) : (e - 1) << 7);
}

}  // namespace

float BlockParts::scale() const {
  return has_exponent_ ? from_bfloat16(d) : from_float16(d);
}
float BlockParts::least() const {
  return from_float16(m);
}

BlockParts::BlockParts(BlockType type, const std::byte* at) : has_exponent_(block_layout(type).has_exponent) {
  const BlockLayout layout = block_layout(type);
  if (has_exponent_) {
    s[0] = t[0] = 1;
    d = power_of_two(byte_at(at++, 0));
  } else if (layout.parts() == 1) {
    s[0] = t[0] = 1;
    d = half_at(at);
    if (layout.has_least) m = half_at(at + 2);
    at += layout.has_least ? 4 : 2;
  }
  switch (type) {
    case BlockType::kQ4_0:
    case BlockType::kQ4_1:
    case BlockType::kIQ4_NL:
    case BlockType::kMXFP4:
      take_nibbles(at, q);
      break;
    case BlockType::kQ5_0:
    case BlockType::kQ5_1:
      take_fives(at, q);
      break;
    case BlockType::kQ8_0:
      for (int i = 0; i < 32; ++i) q[i] = static_cast<uint8_t>(byte_at(at, i) ^ 128u);  // int8 + 128
      break;
    case BlockType::kQ2_K:
      take_q2_k(at, *this);
      break;
    case BlockType::kQ3_K:
      take_q3_k(at, *this);
      break;
    case BlockType::kQ4_K:
    case BlockType::kQ5_K: {
      d = half_at(at);
      m = half_at(at + 2);
      const bool fives = type == BlockType::kQ5_K;
      take_parts_of_32(at + 4, fives ? at + 16 : nullptr, at + (fives ? 48 : 16), *this);
      break;
    }
    case BlockType::kQ6_K:
      take_q6_k(at, *this);
      break;
    case BlockType::kIQ4_XS:
      take_iq4_xs(at, *this);
      break;
  }
}

BlockParts BlockParts::of(const BlockMatrix& matrix, int64_t row, int64_t block) {
  constexpr BlockLayout kBytes = block_layout(BlockType::kQ8_0);
  const std::byte* const from = matrix.row(row);
  if (matrix.scales.empty()) return {matrix.type, from + block * block_layout(matrix.type).bytes};
  std::byte whole[kBytes.bytes];
  const uint16_t scale = matrix.scales[static_cast<size_t>(matrix.place_of(row))];
  std::memcpy(whole, &scale, sizeof scale);
  std::memcpy(whole + sizeof scale, from + block * kBytes.numbers, kBytes.numbers);
  return {matrix.type, whole};
}

}  // namespace mh
