#include "multihead/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/product_rows.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/gemm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {

int64_t product_panel() {
  return kPanel;
}

// C [m, n] (+)= A B for a block of rows and the panels [first, last) of B: one after the other, each in blocks of
// k that stay in the nearest cache while all rows of A pass over them.
void multiply_rows(const ProductRows& rows, const PackedMatrix& b, MatrixView c, bool add, int64_t first,
                   int64_t last) {
  const ConstMatrixView& a = rows.numbers;
  // Less than this stays in the second-level cache from one block of rows to the next.
  constexpr int64_t kNear = 512 << 10;  // bytes
  const bool comes_from_afar =
      a.rows >= kRowsThatAsk &&
      (last - first) * kPanel * b.rows() * static_cast<int64_t>(sizeof(float)) > kNear;
  const int64_t even = b.rounds_rows() ? std::max<int64_t>(1, b.rows()) : block_of_depth(b.rows());
  for (int64_t k0 = 0; k0 < b.rows() || k0 == 0; k0 += even) {
    const int64_t depth = std::min(even, b.rows() - k0);
    for (int64_t p = first; p < last; ++p) {
      if (b.kind() != PanelKind::kFloat32) {
        const PackedMatrix::SmallPanel& panel = b.small_panel(p);
        const MatrixView to{c.data + panel.column, c.rows, panel.width, c.stride};
        multiply_small_panel(rows, b, p, k0, depth, to, add || k0 > 0);
        continue;
      }
      const int64_t column = p * kPanel, width = std::min(kPanel, b.cols() - column);
      const LeftFactor left{
          .data = a.data + k0, .row_stride = a.stride, .k_stride = 1, .rows = a.rows, .depth = depth};
      const float* const panel = b.panel_data(p) + k0 * kPanel;
      float* const to = c.data + column;
      const bool is_last = p + 1 == last;
      const int64_t next_k0 = is_last ? k0 + depth : k0, next_depth = std::min(even, b.rows() - next_k0);
      if (!comes_from_afar || next_depth <= 0) {
        multiply_panel(left, panel, to, c.stride, width, add || k0 > 0);
        continue;
      }
      const float* const next = b.panel_data(is_last ? first : p + 1) + next_k0 * kPanel;
      multiply_panel_before({next, next + next_depth * kPanel}, left, panel, to, c.stride, width,
                            add || k0 > 0);
    }
  }
}

// One task of C (+)= A^T B: columns [m0, m1) of A, a panel of B from `column` on.
void multiply_transposed_block(ConstMatrixView a, ConstMatrixView b, MatrixView c, int64_t m0, int64_t m1,
                               int64_t column, bool add) {
  alignas(64) thread_local float block[kDepth * kPanel];
  const int64_t width = std::min(kPanel, b.cols - column);
  for (int64_t k0 = 0; k0 < a.rows || k0 == 0; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, a.rows - k0);
    for (int64_t k = 0; k < depth; ++k) {
      float* to = block + k * kPanel;
      std::memcpy(to, b.row(k0 + k) + column, static_cast<size_t>(width) * sizeof(float));
      std::fill(to + width, to + kPanel, 0.0f);
    }
    multiply_panel(
        {.data = a.row(k0) + m0, .row_stride = 1, .k_stride = a.stride, .rows = m1 - m0, .depth = depth},
        block, c.row(m0) + column, c.stride, width, add || k0 > 0);
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(product_panel);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(multiply_transposed_block);

int64_t panel_width() {
  return HWY_DYNAMIC_DISPATCH(product_panel)();
}

void detail::multiply_rows(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write) {
  thread_local AlignedBuffer<std::byte> memory;
  const ProductRows rows = product_rows(a, b, memory, RoundedBy::kCaller);
  HWY_DYNAMIC_DISPATCH(multiply_rows)(rows, b, c, write == Write::kAdd, 0, b.panels());
}

void detail::multiply_by_panels(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write) {
  constexpr int64_t kWholeTiles = 12;  // rows of two tiles
  // So many rows of A (times a block of k) stay in the second-level cache beside a panel.
  constexpr int64_t kRowsOfPanels = 192;
  const int64_t blocks = std::max<int64_t>(1, (a.rows + kRowsOfPanels - 1) / kRowsOfPanels);
  const int64_t rows = (a.rows + blocks * kWholeTiles - 1) / (blocks * kWholeTiles) * kWholeTiles;
  // A task's work: reading a number of B costs as much as multiplying eight rows by it.
  constexpr int64_t kReading = 8, kWork = 1 << 20;
  const int64_t work = std::max<int64_t>(1, b.rows() * b.panel() * (std::min(rows, a.rows) + kReading)),
                panels = (kWork + work - 1) / work, most = (b.panels() + panels - 1) / panels;
  // With one row of integers a product takes the time that reading B takes, which is least when each thread reads one stretch of
  // memory (1.05 times as fast on a Zen 4). Other products are faster when threads that are ahead take more tasks.
  const bool one_stretch = a.rows == 1 && b.rounds_rows();
  const int64_t groups = one_stretch ? std::min<int64_t>(most, mh::thread_count()) : most;
  thread_local AlignedBuffer<std::byte> memory;
  const ProductRows whole = product_rows(a, b, memory, RoundedBy::kAllThreads);
  mh::parallel_for(blocks * groups, [&](int64_t task) {
    const int64_t begin = std::min(a.rows, task / groups * rows), end = std::min(a.rows, begin + rows),
                  group = task % groups;
    HWY_DYNAMIC_DISPATCH(multiply_rows)
    (whole.rows_between(begin, end), b, c.rows_between(begin, end), write == Write::kAdd,
     group * b.panels() / groups, (group + 1) * b.panels() / groups);
  });
}

namespace {
/// From so many rows on blocks of kRowsPerTask are enough tasks: two threads share 17 as 9 and 8, and lose 6 %.
constexpr int64_t kManyRows = 1536;
}  // namespace

bool detail::by_panels(int64_t rows) {
  constexpr int64_t kFew = 192;
  return rows <= kFew || (rows <= kManyRows && rows < mh::thread_count() * kRowsPerTask);
}

int64_t detail::rows_of_product_task(int64_t rows) {
  constexpr int64_t kMost = 2 * kRowsPerTask;
  if (rows > kManyRows) return kRowsPerTask;
  const int64_t threads = mh::thread_count(), rounds = (rows + threads * kMost - 1) / (threads * kMost),
                tasks = threads * std::max<int64_t>(1, rounds);
  return std::max<int64_t>(1, (rows + 2 * tasks - 1) / (2 * tasks) * 2);
}

void detail::run_row_tasks(int64_t rows, int64_t rows_per_task, void (*run)(void*, int64_t, int64_t),
                           void* body) {
  mh::parallel_for((rows + rows_per_task - 1) / rows_per_task, [&](int64_t task) {
    run(body, task * rows_per_task, std::min(rows, (task + 1) * rows_per_task));
  });
}

void check_product(ConstMatrixView a, const PackedMatrix& b, ConstMatrixView c) {
  if (a.cols != b.rows() || c.rows != a.rows || c.cols != b.cols()) {
    throw ShapeError(fmt::format("multiply: [{},{}] x [{},{}] into [{},{}]", a.rows, a.cols, b.rows(),
                                 b.cols(), c.rows, c.cols));
  }
}

void multiply(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write) {
  if (!detail::by_panels(a.rows)) return multiply(a, b, c, write, [](int64_t, int64_t) {});
  check_product(a, b, c);
  detail::multiply_by_panels(a, b, c, write);
}

void multiply_transposed(ConstMatrixView a, ConstMatrixView b, MatrixView c, Write write) {
  if (a.rows != b.rows || c.rows != a.cols || c.cols != b.cols) {
    throw ShapeError(fmt::format("multiply_transposed: [{},{}]^T x [{},{}] into [{},{}]", a.rows, a.cols,
                                 b.rows, b.cols, c.rows, c.cols));
  }
  const int64_t panel = panel_width();
  const int64_t panels = (c.cols + panel - 1) / panel;
  // A panel of B is copied once for each task that uses it, so a task takes many rows of C.
  constexpr int64_t kRows = 132;
  const int64_t blocks = (c.rows + kRows - 1) / kRows;
  parallel_for(panels * blocks, [&](int64_t task) {
    const int64_t m0 = task % blocks * kRows;
    HWY_DYNAMIC_DISPATCH(multiply_transposed_block)
    (a, b, c, m0, std::min(c.rows, m0 + kRows), task / blocks * panel, write == Write::kAdd);
  });
}

}  // namespace mh
#endif
