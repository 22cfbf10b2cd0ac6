// The left factor X [M, K] of a product of bytes, rotated, with one scale for each row:
//
//   x_i R ~ s_i a_i,   a_ik = round((x_i R)_k / s_i), halves to the even one, -127 to 127,   s_i = max_k |(x_i R)_k| / 127
//
// A few numbers of a row that are larger than all others would leave the others few of the 127 steps. The rotation R spreads
// each over 128 numbers, and a product does not change when its other factor is rotated, too: R R = 128, so X W = X R (R W) / 128
// (kernels/channel_panels.h). R is symmetric: Hadamard matrices along K, each sqrt(128) times an orthonormal one: of 128
// numbers while there are as many, whose entries are 1 and -1; of those behind them of the largest power of two that fits,
// again and again, times sqrt(128 / n).
//
// A Hadamard matrix of n is log2(n) steps: at the distances 1, 2, 4, ..., n / 2, numbers p and q at such a distance become p + q
// and p - q in float32. All processors do them in this order, and so have the same bits.
//
// Where the largest magnitude of x_i R is below 2^-100 all a_ik and s_i are 0. Where a number of x_i R is not finite, the scale is
// NaN, so that what is computed of the row is, and all a_ik are 0: it is so where one of x_i is not, and where a sum of 128 of
// them is beyond float32, which can be from 2^121 (2.7e36) on.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "multihead/base/matrix_view.h"
#include "multihead/kernels/integer_scale.h"

namespace mh {

inline constexpr int64_t kRotation = 128;
/// More numbers than these have sums beyond int32: 127 * 128 for each.
inline constexpr int64_t kMostChannelDepth = 1 << 17;

/// Numbers of the next Hadamard matrix of R where so many are left.
constexpr int64_t rotated_together(int64_t left) {
  return std::min(kRotation, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(left))));
}
/// sqrt(128 / n), n a power of two.
constexpr float rotation_factor(int64_t n) {
  float factor = 1;
  for (; n < kRotation; n *= 4) factor *= 2;
  return n == kRotation ? factor : factor * 0.707106781f;
}

/// Bytes of a row: whole groups of four.
constexpr int64_t channel_depth(int64_t k) {
  return (k + 3) / 4 * 4;
}

/// Rows in memory of somebody else. Row r of each array follows row r - 1 at once.
struct ChannelRows {
  int64_t rows = 0, depth = 0;  // channel_depth(K)
  int8_t* low = nullptr;        // [rows, depth]: a_ik, and 0 from K on
  float* scale = nullptr;       // [rows]: s_i
  int32_t* sum = nullptr;       // [rows]: sum_k a_ik

  ChannelRows rows_between(int64_t begin, int64_t end) const;
};

/// Bytes of so many rows of so many numbers. REQUIRES: k <= kMostChannelDepth, here and below.
int64_t channel_rows_bytes(int64_t rows, int64_t k);

/// Rows of X as integers in `memory`, which has channel_rows_bytes() and begins on a cache line. A row's integers depend on it
/// alone. It is filled by fill_channel_rows().
ChannelRows place_channel_rows(int64_t rows, int64_t k, std::byte* memory);

/// Fills rows [begin, end).
void fill_channel_rows(ConstMatrixView x, const ChannelRows& to, int64_t begin, int64_t end);

}  // namespace mh
