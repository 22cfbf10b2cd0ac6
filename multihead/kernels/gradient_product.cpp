#include "multihead/kernels/gradient_product.h"

#include <algorithm>

#include "multihead/base/aligned.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/block_panels.h"
#include "multihead/kernels/half_panels.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/gradient_product.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/micro_kernel-inl.h"

#ifndef MULTIHEAD_GRADIENT_PRODUCT_WINDOW
#define MULTIHEAD_GRADIENT_PRODUCT_WINDOW
namespace mh {
// Rows of B of a window: whole tiles, and whole blocks of 32 numbers.
inline constexpr int64_t kWindowRows = 96;
}  // namespace mh
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

/// The first panel that has columns from this one on.
int64_t panel_with(const PackedMatrix& b, int64_t column) {
  int64_t low = 0, high = b.panels() - 1;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const PackedMatrix::SmallPanel& panel = b.small_panel(middle);
    if (panel.column + panel.width > column) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// to[j][i] = from[i][j], 16 rows at a time, so that cache lines are written whole.
void transpose(const ConstMatrixView& from, float* to, int64_t stride) {
  constexpr int64_t kRows = 16;
  for (int64_t begin = 0; begin < from.rows; begin += kRows) {
    const int64_t end = std::min(begin + kRows, from.rows);
    int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    // Squares of four.
    const hn::Full128<float> d;
    for (; end == begin + kRows && j + 4 <= from.cols; j += 4) {
      for (int64_t i = begin; i < end; i += 4) {
        const auto a = hn::LoadU(d, from.row(i) + j), b = hn::LoadU(d, from.row(i + 1) + j),
                   c = hn::LoadU(d, from.row(i + 2) + j), e = hn::LoadU(d, from.row(i + 3) + j);
        const auto ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b),
                   ce_low = hn::InterleaveLower(d, c, e), ce_high = hn::InterleaveUpper(d, c, e);
        float* const at = to + j * stride + i;
        hn::StoreU(hn::ConcatLowerLower(d, ce_low, ab_low), d, at);
        hn::StoreU(hn::ConcatUpperUpper(d, ce_low, ab_low), d, at + stride);
        hn::StoreU(hn::ConcatLowerLower(d, ce_high, ab_high), d, at + 2 * stride);
        hn::StoreU(hn::ConcatUpperUpper(d, ce_high, ab_high), d, at + 3 * stride);
      }
    }
#endif
    for (; j < from.cols; ++j) {
      for (int64_t i = begin; i < end; ++i) to[j * stride + i] = from(i, j);
    }
  }
}

/// Rows [begin, end) of panels from `panel` on, of so many columns at least, as float32.
void unpack_window(const PackedMatrix& b, int64_t panel, int64_t columns, int64_t begin, int64_t end,
                   float* to, int64_t stride) {
  const int64_t first = b.small_panel(panel).column;
  for (int64_t p = panel; p < b.panels() && b.small_panel(p).column < first + columns; ++p) {
    const PackedMatrix::SmallPanel& from = b.small_panel(p);
    // A panel that is not full writes zeros where the next one begins.
    float* const at = to + from.column - first;
    if (b.kind() == PanelKind::kBlocks) {
      unpack_block_panel(from.block, b.small_data(p), begin, end, at, stride);
    } else {
      unpack_half_panel(from.half, b.small_data(p), begin, end, at, stride);
    }
  }
}

/// multiply_window() for rows k_begin on of B, as many as dx_t has.
void multiply_window_rows(const ConstMatrixView& dy, const PackedMatrix& b, int64_t column, int64_t k_begin,
                          const MatrixView& dx_t, bool add) {
  thread_local AlignedBuffer<float> panels_of_dy, numbers;
  // dY^T in panels of M: [columns of dY, kPanel] each
  float* const right = panels_of_dy.get((dy.rows + kPanel - 1) / kPanel * kPanel * dy.cols);
  for (int64_t m = 0; m < dy.rows; m += kPanel) {
    float* const panel = right + m * dy.cols;
    const int64_t end = std::min(m + kPanel, dy.rows);
    if (end < m + kPanel) std::fill_n(panel, dy.cols * kPanel, 0.0f);
    transpose(dy.rows_between(m, end), panel, kPanel);
  }
  const int64_t panel = panel_with(b, column), skipped = column - b.small_panel(panel).column,
                span = skipped + dy.cols;
  // The last panel may reach beyond what is read by almost a panel.
  const int64_t stride = (span + kPanel + kCacheLineFloats - 1) / kCacheLineFloats * kCacheLineFloats;
  float* const window = numbers.get(kWindowRows * stride);
  for (int64_t k = 0; k < dx_t.rows; k += kWindowRows) {
    const int64_t rows = std::min(kWindowRows, dx_t.rows - k);
    unpack_window(b, panel, span, k_begin + k, k_begin + k + rows, window, stride);
    const LeftFactor left{
        .data = window + skipped, .row_stride = stride, .k_stride = 1, .rows = rows, .depth = dy.cols};
    for (int64_t m = 0; m < dy.rows; m += kPanel)
      multiply_panel(left, right + m * dy.cols, dx_t.row(k) + m, dx_t.stride, std::min(kPanel, dy.rows - m),
                     add);
  }
}

}  // namespace

void multiply_whole_window(const ConstMatrixView& dy, const PackedMatrix& b, int64_t column,
                           const MatrixView& dx_t, bool add) {
  multiply_window_rows(dy, b, column, 0, dx_t, add);
}

/// dX (+)= dY B'^T for rows [k_begin, k_begin + dx.cols) B' of B.
void multiply_windows(const ConstMatrixView& dy, const PackedMatrix& b, int64_t k_begin, const MatrixView& dx,
                      bool add) {
  thread_local AlignedBuffer<float> memory;
  const int64_t block = block_of_depth(b.cols());
  const MatrixView dx_t(memory.get(dx.size()), dx.cols, dx.rows);
  if (add) transpose(dx, dx_t.data, dx_t.stride);
  for (int64_t n = 0; n < b.cols(); n += block)
    multiply_window_rows(dy.columns_between(n, std::min(n + block, b.cols())), b, n, k_begin, dx_t,
                         add || n > 0);
  transpose(dx_t, dx.data, dx.stride);
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(multiply_whole_window);
HWY_EXPORT(multiply_windows);

namespace {

bool can_be_unpacked(const PackedMatrix& b) {
  return b.is_exact() && b.cols() > 0 && (b.kind() == PanelKind::kBlocks || b.kind() == PanelKind::kHalves);
}

}  // namespace

void multiply_window(ConstMatrixView dy, const PackedMatrix& b, int64_t column, MatrixView dx_t, bool add) {
  MH_ASSERT(can_be_unpacked(b) && dx_t.rows == b.rows() && dx_t.cols == dy.rows);
  MH_ASSERT(0 <= column && column + dy.cols <= b.cols());
  HWY_DYNAMIC_DISPATCH(multiply_whole_window)(dy, b, column, dx_t, add);
}

void detail::multiply_by_windows(ConstMatrixView dy, const PackedMatrix& b, MatrixView dx, Write write) {
  MH_ASSERT(can_be_unpacked(b) && dy.cols == b.cols() && dx.rows == dy.rows && dx.cols == b.rows());
  // B is unpacked for each block of rows, and dY^T packed for each group of rows of B.
  constexpr int64_t kMostRows = 192, kWholeRows = 32;
  const int64_t most = (dy.rows + kMostRows - 1) / kMostRows,
                share = most == 0 ? 0 : (dy.rows + most - 1) / most,
                rows = std::max<int64_t>(1, (share + kWholeRows - 1) / kWholeRows * kWholeRows),
                blocks = (dy.rows + rows - 1) / rows;
  const int64_t windows = (b.rows() + kWindowRows - 1) / kWindowRows, wanted = 2 * mh::thread_count(),
                groups = std::clamp<int64_t>((wanted + blocks - 1) / std::max<int64_t>(1, blocks), 1,
                                             std::max<int64_t>(1, windows)),
                group = (windows + groups - 1) / groups * kWindowRows;
  mh::parallel_for(blocks * groups, [&](int64_t task) {
    const int64_t begin = task / groups * rows, end = std::min(dy.rows, begin + rows),
                  k = std::min(b.rows(), task % groups * group), k_end = std::min(b.rows(), k + group);
    if (k == k_end) return;
    HWY_DYNAMIC_DISPATCH(multiply_windows)
    (dy.rows_between(begin, end), b, k, dx.rows_between(begin, end).columns_between(k, k_end),
     write == Write::kAdd);
  });
}

}  // namespace mh
#endif
