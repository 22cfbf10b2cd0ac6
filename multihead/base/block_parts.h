// BlockParts: a quantised block's integers and scales, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "multihead/base/block_matrix.h"

namespace mh {

/// What the formula of base/block_matrix.h is made of.
struct BlockParts {
  uint16_t d = 0, m = 0;          // the bits of float16; of a d with an exponent alone, of bfloat16
  int8_t s[16] = {}, t[16] = {};  // of each part
  uint8_t q[256] = {};

  float scale() const;  // d
  float least() const;  // m

  /// Those of the block at `at`.
  BlockParts(BlockType type, const std::byte* at);
  /// Those of a block of a row.
  static BlockParts of(const BlockMatrix& matrix, int64_t row, int64_t block);

 private:
  bool has_exponent_;
};

}  // namespace mh
