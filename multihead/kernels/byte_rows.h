// The left factor A [M, K] of a product with blocks as integers, for the contracts near and fast (docs/precision.md): for each
// 32 numbers of a row,
//
//   x_k ~ scale a_k,   a_k = round(x_k / scale), halves to the even one,   scale = max_k |x_k| / most
//
// with most = 127 (fast: a_k is a byte) or 32,512 (near: a_k = 256 high_k + low_k, two bytes, high_k from -127 to 127). Where the
// largest is below 2^-100 all a_k and the scale are 0. Where a number is not finite the scale is NaN, so that sums are.
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
  int8_t* high = nullptr;       // [rows, depth]; null: fast
  float* scale = nullptr;       // [rows, depth / 32]
  int32_t* sum = nullptr;       // [rows, depth / 16]: sums of 16 a_k

  ByteRows rows_between(int64_t begin, int64_t end) const;
};

/// Bytes of so many rows. REQUIRES: depth has whole groups, here and below.
int64_t byte_rows_bytes(int64_t rows, int64_t depth, bool near);

/// Rows of A as integers in `memory`, which has byte_rows_bytes() and begins on a cache line. A row's integers depend on it alone.
/// It is filled by fill_byte_rows().
ByteRows place_byte_rows(int64_t rows, int64_t depth, bool near, std::byte* memory);

/// Fills rows [begin, end).
void fill_byte_rows(ConstMatrixView a, const ByteRows& to, int64_t begin, int64_t end);

}  // namespace mh
