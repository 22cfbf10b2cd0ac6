// The left factor A [M, K] of a product with blocks as integers, for the contracts near and fast (docs/precision.md): for each
// group of 32 numbers of a row,
//
//   x_k ~ scale a_k,   a_k = round(x_k / scale), halves to the even one,   scale = max_k |x_k| / most
//
// most = 127 in a narrow group, whose a_k are bytes, and 32,512 in a wide one, a_k = 256 high_k + low_k, two bytes, high_k from -127
// to 127. Near makes all groups wide. Fast those alone whose largest magnitude l_g has l_g^2 > 2 mean_h l_h^2 over the groups of the
// row: rounding adds noise in proportion to scale^2, of which a few groups with outliers have most. A tenth of the groups are so,
// and the divergence of SmolLM2's next words falls to a quarter (docs/precision.md).
//
// Where the largest is below 2^-100 all a_k and the scale are 0. Where a number is not finite the scale is NaN, so that sums are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "multihead/base/matrix_view.h"

namespace mh {

inline constexpr int64_t kByteGroup = 32;  // numbers with one scale

/// Rows in memory of somebody else. Row r of each array follows row r - 1 at once.
struct ByteRows {
  int64_t rows = 0, depth = 0;  // K, whole groups
  int8_t* low = nullptr;        // [rows, depth]: a_k, or the low bytes
  int8_t* high = nullptr;       // [rows, depth]: the high bytes; of wide groups alone
  float* scale = nullptr;       // [rows, depth / 32]
  int32_t* sum = nullptr;       // [rows, depth / 16]: sums of 16 a_k
  uint8_t* wide = nullptr;      // [rows, depth / 32]: 1 where the group is wide

  ByteRows rows_between(int64_t begin, int64_t end) const;
};

/// Bytes of so many rows. REQUIRES: depth has whole groups, here and below.
int64_t byte_rows_bytes(int64_t rows, int64_t depth);

/// Rows of A as integers in `memory`, which has byte_rows_bytes() and begins on a cache line. A row's integers depend on it alone.
/// It is filled by fill_byte_rows().
ByteRows place_byte_rows(int64_t rows, int64_t depth, std::byte* memory);

/// Which groups are wide.
enum class WideGroups { kLargest, kAll };

/// Fills rows [begin, end).
void fill_byte_rows(ConstMatrixView a, WideGroups wide, const ByteRows& to, int64_t begin, int64_t end);

}  // namespace mh
