// Rows of float32 as bfloat16, of 16 bits: the left factor A [M, K] of a product with panels of bfloat16
// (kernels/half_panels.h), for the contract near, and what a key/value cache may keep (docs/precision.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "multihead/base/matrix_view.h"

namespace mh {

/// to = the nearest bfloat16, of two as near the even one; both [rows, cols]. Infinite numbers and NaN stay so; from
/// 0x1.FFp127 on numbers become infinite. On the calling thread.
void round_to_halves(ConstMatrixView from, HalfView to);

/// K, or K + 1 where that is even: numbers are multiplied in pairs.
constexpr int64_t even_depth(int64_t k) {
  return k + k % 2;
}

/// Rows of A rounded to bfloat16, in memory of somebody else. Row r + 1 follows row r at once.
struct HalfRows {
  int64_t rows = 0, depth = 0;  // even_depth(K)
  uint16_t* numbers = nullptr;  // [rows, depth]; beyond K they are 0

  HalfRows rows_between(int64_t begin, int64_t end) const;
};

/// Bytes of so many rows of k numbers.
int64_t half_rows_bytes(int64_t rows, int64_t k);

/// Rows of A [rows, k] in `memory`, which has half_rows_bytes() and begins on a cache line, to be filled by fill_half_rows().
HalfRows place_half_rows(int64_t rows, int64_t k, std::byte* memory);

/// Fills rows [begin, end) by round_to_halves().
void fill_half_rows(ConstMatrixView a, const HalfRows& to, int64_t begin, int64_t end);

}  // namespace mh
