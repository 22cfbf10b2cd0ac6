// Rows of quantised numbers as a GGUF file has them: blocks of numbers along a row. All these types have one formula: number i
// of a block is
//
//   d s (q_i - offset) + m t
//
// with d and m of the block, float16; s and t of its part, small integers; and q_i of low_bits + high_bits bits. A type without m
// has m = 0, a block without parts s = t = 1. A product of d, s and q is exact in float32, so that only the sum rounds.
// base/block_parts.h takes blocks apart; io/gguf_unpack.h says how the bytes lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mh {

enum class BlockType { kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K };

struct BlockLayout {
  int64_t numbers;  // of a block
  int64_t bytes;    // of a block in a file
  int64_t part;     // numbers of a part: those of the block where it has no parts
  int low_bits;     // 2, 4 or 8 of each number
  int high_bits;    // 0, 1 or 2 more
  bool has_least;   // whether there is an m
  int offset;

  constexpr int64_t parts() const { return numbers / part; }
};

constexpr BlockLayout block_layout(BlockType type) {
  switch (type) {
    case BlockType::kQ4_0:
      return {.numbers = 32,
              .bytes = 18,
              .part = 32,
              .low_bits = 4,
              .high_bits = 0,
              .has_least = false,
              .offset = 8};
    case BlockType::kQ4_1:
      return {.numbers = 32,
              .bytes = 20,
              .part = 32,
              .low_bits = 4,
              .high_bits = 0,
              .has_least = true,
              .offset = 0};
    case BlockType::kQ5_0:
      return {.numbers = 32,
              .bytes = 22,
              .part = 32,
              .low_bits = 4,
              .high_bits = 1,
              .has_least = false,
              .offset = 16};
    case BlockType::kQ5_1:
      return {.numbers = 32,
              .bytes = 24,
              .part = 32,
              .low_bits = 4,
              .high_bits = 1,
              .has_least = true,
              .offset = 0};
    case BlockType::kQ2_K:
      return {.numbers = 256,
              .bytes = 84,
              .part = 16,
              .low_bits = 2,
              .high_bits = 0,
              .has_least = true,
              .offset = 0};
    case BlockType::kQ3_K:
      return {.numbers = 256,
              .bytes = 110,
              .part = 16,
              .low_bits = 2,
              .high_bits = 1,
              .has_least = false,
              .offset = 4};
    case BlockType::kQ4_K:
      return {.numbers = 256,
              .bytes = 144,
              .part = 32,
              .low_bits = 4,
              .high_bits = 0,
              .has_least = true,
              .offset = 0};
    case BlockType::kQ5_K:
      return {.numbers = 256,
              .bytes = 176,
              .part = 32,
              .low_bits = 4,
              .high_bits = 1,
              .has_least = true,
              .offset = 0};
    case BlockType::kQ6_K:
      return {.numbers = 256,
              .bytes = 210,
              .part = 16,
              .low_bits = 4,
              .high_bits = 2,
              .has_least = false,
              .offset = 32};
    case BlockType::kQ8_0:
      break;
  }
  return {.numbers = 32,
          .bytes = 34,
          .part = 32,
          .low_bits = 8,
          .high_bits = 0,
          .has_least = false,
          .offset = 128};
}

/// [rows, cols] in memory that somebody else owns and nobody changes. cols is a multiple of a block's numbers; the bytes
/// need no alignment.
struct BlockMatrix {
  const std::byte* data = nullptr;
  BlockType type = BlockType::kQ8_0;
  int64_t rows = 0, cols = 0;
  std::vector<int64_t> order = {};  // row i is row order[i] of the memory; empty: row i

  int64_t row_bytes() const {
    const BlockLayout layout = block_layout(type);
    return cols / layout.numbers * layout.bytes;
  }
  const std::byte* row(int64_t i) const {
    return data + (order.empty() ? i : order[static_cast<size_t>(i)]) * row_bytes();
  }
};

}  // namespace mh
