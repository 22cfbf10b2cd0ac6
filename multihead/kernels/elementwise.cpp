#include "multihead/kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void add_bias_rows(const float* bias, const MatrixView& y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < y.rows; ++r) {
    float* row = y.row(r);
    int64_t c = 0;
    for (; c + lanes <= y.cols; c += lanes)
      hn::StoreU(hn::Add(hn::LoadU(d, row + c), hn::LoadU(d, bias + c)), d, row + c);
    for (; c < y.cols; ++c) row[c] += bias[c];
  }
}

void multiply_rows_by(const ConstMatrixView& x, const MatrixView& y) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    for (int64_t c = 0; c < x.cols; ++c) to[c] *= from[c];
  }
}

void copy_or_add_rows(const ConstMatrixView& x, const MatrixView& y, bool add) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    if (add) {
      for (int64_t c = 0; c < x.cols; ++c) to[c] += from[c];
    } else {
      std::memcpy(to, from, static_cast<size_t>(x.cols) * sizeof(float));
    }
  }
}

// Sums of columns [c, c + width) over all rows; rows in blocks of 512 so that rounding grows with the blocks
// only.
void sum_columns(const ConstMatrixView& x, int64_t c, int64_t width, float* sums, bool add) {
  constexpr int64_t kBlock = 512;
  float total[64] = {};
  for (int64_t r0 = 0; r0 < x.rows; r0 += kBlock) {
    float block[64] = {};
    for (int64_t r = r0; r < std::min(x.rows, r0 + kBlock); ++r) {
      const float* row = x.row(r) + c;
      if (width == 64) {
        for (int64_t j = 0; j < 64; ++j) block[j] += row[j];
      } else {
        for (int64_t j = 0; j < width; ++j) block[j] += row[j];
      }
    }
    for (int64_t j = 0; j < width; ++j) total[j] += block[j];
  }
  for (int64_t j = 0; j < width; ++j) sums[c + j] = add ? sums[c + j] + total[j] : total[j];
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(add_bias_rows);
HWY_EXPORT(multiply_rows_by);
HWY_EXPORT(copy_or_add_rows);
HWY_EXPORT(sum_columns);

namespace {

void check_alike(ConstMatrixView a, ConstMatrixView b) {
  MH_ASSERT(a.rows == b.rows && a.cols == b.cols);
}

}  // namespace

void add_bias(ConstMatrixView bias, MatrixView y) {
  if (bias.empty()) return;
  MH_ASSERT(bias.rows == 1 && bias.cols == y.cols);
  HWY_DYNAMIC_DISPATCH(add_bias_rows)(bias.data, y);
}

void multiply_elements(ConstMatrixView x, MatrixView y) {
  check_alike(x, y);
  HWY_DYNAMIC_DISPATCH(multiply_rows_by)(x, y);
}

void copy_or_add(ConstMatrixView x, MatrixView y, Write write) {
  check_alike(x, y);
  HWY_DYNAMIC_DISPATCH(copy_or_add_rows)(x, y, write == Write::kAdd);
}

void column_sums(ConstMatrixView x, MatrixView sums, Write write) {
  MH_ASSERT(sums.rows == 1 && sums.cols == x.cols);
  constexpr int64_t kColumns = 64;  // of a task
  parallel_for((x.cols + kColumns - 1) / kColumns, [&](int64_t task) {
    const int64_t c = task * kColumns;
    HWY_DYNAMIC_DISPATCH(sum_columns)(x, c, std::min(kColumns, x.cols - c), sums.data, write == Write::kAdd);
  });
}

}  // namespace mh
#endif
