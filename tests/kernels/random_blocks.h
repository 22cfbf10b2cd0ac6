// Random blocks of every type, for tests of products with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <vector>

#include "multihead/base/block_matrix.h"
#include "multihead/base/block_parts.h"
#include "multihead/base/random.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/tensor/tensor.h"

namespace mh {

inline constexpr BlockType kBlockTypes[] = {
    BlockType::kQ4_0,   BlockType::kQ4_1,   BlockType::kQ5_0, BlockType::kQ5_1, BlockType::kQ8_0,
    BlockType::kQ2_K,   BlockType::kQ3_K,   BlockType::kQ4_K, BlockType::kQ5_K, BlockType::kQ6_K,
    BlockType::kIQ4_NL, BlockType::kIQ4_XS, BlockType::kMXFP4};
static_assert(std::size(kBlockTypes) == std::size(kBlockLayouts));

/// Where d and m lie in a block; -1: there is no m.
struct ScalesAt {
  int d, m;
};
inline ScalesAt scales_at(BlockType type) {
  switch (type) {
    case BlockType::kQ2_K:
      return {80, 82};
    case BlockType::kQ3_K:
      return {108, -1};
    case BlockType::kQ6_K:
      return {208, -1};
    case BlockType::kMXFP4:
      return {-1, -1};  // an exponent
    default:
      return {0, block_layout(type).has_least ? 2 : -1};
  }
}

/// v(q_k) - offset.
inline int integer_of(const BlockParts& parts, const BlockLayout& layout, int64_t k) {
  return (layout.values != nullptr ? layout.values[parts.q[k]] : parts.q[k]) - layout.offset;
}

/// Random blocks in memory of their own, with scales that are finite: some 0, subnormal or the largest.
struct RandomBlocks {
  std::vector<std::byte> bytes;
  BlockMatrix matrix;

  RandomBlocks(BlockType type, int64_t rows, int64_t cols, uint64_t seed, bool reversed = false) {
    matrix = {.type = type, .rows = rows, .cols = cols};
    bytes.resize(static_cast<size_t>(rows * matrix.row_bytes() + 1));
    Random random(seed);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
    std::byte* at = bytes.data() + 1;  // of no alignment
    matrix.data = at;
    constexpr uint16_t kScales[] = {0, 0x8000, 1, 0x83FF, 0x0400, 0x3C00, 0xB555, 0x2E66, 0x7BFF};
    const BlockLayout layout = block_layout(type);
    for (int64_t block = 0; block < rows * cols / layout.numbers; ++block, at += layout.bytes) {
      for (const int place : {scales_at(type).d, scales_at(type).m})
        if (place >= 0) std::memcpy(at + place, &kScales[random.bits() % std::size(kScales)], 2);
    }
    if (!reversed) return;
    matrix.order.resize(static_cast<size_t>(rows));
    std::iota(matrix.order.rbegin(), matrix.order.rend(), 0);
  }

  /// By the formula, in float64, where only the last step rounds.
  Tensor numbers() const {
    const BlockLayout layout = block_layout(matrix.type);
    Tensor to(matrix.rows, matrix.cols);
    for (int64_t i = 0; i < to.rows(); ++i) {
      for (int64_t begin = 0; begin < to.cols(); begin += layout.numbers) {
        const BlockParts parts(matrix.type, matrix.row(i) + begin / layout.numbers * layout.bytes);
        const double d = parts.scale(), m = parts.least();
        for (int64_t k = 0; k < layout.numbers; ++k) {
          const int64_t part = k / layout.part;
          to(i, begin + k) =
              static_cast<float>(d * parts.s[part] * integer_of(parts, layout, k) + m * parts.t[part]);
        }
      }
    }
    return to;
  }
};

}  // namespace mh
