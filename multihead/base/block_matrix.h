// Rows of quantised numbers as a GGUF file has them: blocks of numbers along a row. All these types have one formula: number i
// of a block is
//
//   d s (v(q_i) - offset) + m t
//
// with d and m of the block, float16, or where `has_exponent` d = 2^(e - 128); s and t of its part, small integers; and q_i of
// low_bits + high_bits bits. v(q) = values[q], or q where there are no values. A type without m has m = 0, a block without
// parts s = t = 1. A product of d, s and v is exact in float32, so that only the sum rounds.
// base/block_parts.h takes blocks apart; io/gguf_unpack.h says how the bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mh {

enum class BlockType {
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4
};

struct BlockLayout {
  int64_t numbers;  // of a block
  int64_t bytes;    // of a block in a file
  int64_t part;     // numbers of a part: those of the block where it has no parts
  int low_bits;     // 2, 4 or 8 of each number
  int high_bits;    // 0, 1 or 2 more
  bool has_least;   // whether there is an m
  int offset;
  const int8_t* values = nullptr;  // of 4 bits; or null
  bool has_exponent = false;

  constexpr int64_t parts() const { return numbers / part; }
};

inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
/// Twice the numbers of a sign, two bits of exponent and one of mantissa.
inline constexpr int8_t kMxFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// A row for each BlockType, in their order; columns are the fields of BlockLayout.
inline constexpr BlockLayout kBlockLayouts[] = {
    {32, 18, 32, 4, 0, false, 8},                      // Q4_0
    {32, 20, 32, 4, 0, true, 0},                       // Q4_1
    {32, 22, 32, 4, 1, false, 16},                     // Q5_0
    {32, 24, 32, 4, 1, true, 0},                       // Q5_1
    {32, 34, 32, 8, 0, false, 128},                    // Q8_0
    {256, 84, 16, 2, 0, true, 0},                      // Q2_K
    {256, 110, 16, 2, 1, false, 4},                    // Q3_K
    {256, 144, 32, 4, 0, true, 0},                     // Q4_K
    {256, 176, 32, 4, 1, true, 0},                     // Q5_K
    {256, 210, 16, 4, 2, false, 32},                   // Q6_K
    {32, 18, 32, 4, 0, false, 0, kIq4Values},          // IQ4_NL
    {256, 136, 32, 4, 0, false, 0, kIq4Values},        // IQ4_XS
    {32, 17, 32, 4, 0, false, 0, kMxFp4Values, true},  // MXFP4
};

constexpr BlockLayout block_layout(BlockType type) {
  return kBlockLayouts[static_cast<size_t>(type)];
}

/// Calls use.operator()<type>(), for code that is compiled for each type.
template <class Use>
constexpr void with_block_type(BlockType type, const Use& use) {
  switch (type) {
    case BlockType::kQ4_0:
      return use.template operator()<BlockType::kQ4_0>();
    case BlockType::kQ4_1:
      return use.template operator()<BlockType::kQ4_1>();
    case BlockType::kQ5_0:
      return use.template operator()<BlockType::kQ5_0>();
    case BlockType::kQ5_1:
      return use.template operator()<BlockType::kQ5_1>();
    case BlockType::kQ8_0:
      return use.template operator()<BlockType::kQ8_0>();
    case BlockType::kQ2_K:
      return use.template operator()<BlockType::kQ2_K>();
    case BlockType::kQ3_K:
      return use.template operator()<BlockType::kQ3_K>();
    case BlockType::kQ4_K:
      return use.template operator()<BlockType::kQ4_K>();
    case BlockType::kQ5_K:
      return use.template operator()<BlockType::kQ5_K>();
    case BlockType::kQ6_K:
      return use.template operator()<BlockType::kQ6_K>();
    case BlockType::kIQ4_NL:
      return use.template operator()<BlockType::kIQ4_NL>();
    case BlockType::kIQ4_XS:
      return use.template operator()<BlockType::kIQ4_XS>();
    case BlockType::kMXFP4:
      return use.template operator()<BlockType::kMXFP4>();
  }
}

/// [rows, cols] in memory that somebody else owns and nobody changes. cols is a multiple of a block's numbers; the bytes
/// need no alignment.
struct BlockMatrix {
  const std::byte* data = nullptr;
  BlockType type = BlockType::kQ8_0;
  int64_t rows = 0, cols = 0;
  std::vector<int64_t> order = {};  // row i is row order[i] of the memory; empty: row i
  /// Of Q8_0 alone, the d of all blocks of each row of the memory, which then has the integers alone; empty: blocks have their own.
  std::vector<uint16_t> scales = {};

  int64_t row_bytes() const {
    const BlockLayout layout = block_layout(type);
    return scales.empty() ? cols / layout.numbers * layout.bytes : cols;
  }
  /// Where row i stands in the memory.
  int64_t place_of(int64_t i) const { return order.empty() ? i : order[static_cast<size_t>(i)]; }
  const std::byte* row(int64_t i) const { return data + place_of(i) * row_bytes(); }
};

}  // namespace mh
