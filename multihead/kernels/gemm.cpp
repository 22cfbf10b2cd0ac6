#include "multihead/kernels/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/gemm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {

int64_t panel_width() {
  return kPanel;
}

// C [m, n] (+)= A B for a block of rows. B's panels in turn, each in blocks of k that stay in the nearest
// cache while all rows of A pass over them.
void multiply_rows(ConstMatrixView a, const PackedMatrix& b, MatrixView c, bool add) {
  for (int64_t k0 = 0; k0 < b.rows() || k0 == 0; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, b.rows() - k0);
    for (int64_t p = 0, column = 0; column < b.cols(); ++p, column += kPanel) {
      const int64_t width = std::min(kPanel, b.cols() - column);
      multiply_panel(
          {.data = a.data + k0, .row_stride = a.stride, .k_stride = 1, .rows = a.rows, .depth = depth},
          b.panel_data(p) + k0 * kPanel, c.data + column, c.stride, width, add || k0 > 0);
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
HWY_EXPORT(panel_width);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(multiply_transposed_block);

void PackedMatrix::reshape(int64_t rows, int64_t cols) {
  rows_ = rows;
  cols_ = cols;
  panel_ = HWY_DYNAMIC_DISPATCH(panel_width)();
  data_.resize((cols + panel_ - 1) / panel_ * panel_ * rows);
}

void PackedMatrix::pack(std::span<const ConstMatrixView> parts) {
  MH_ASSERT(!parts.empty());
  int64_t cols = 0;
  for (const auto& part : parts) {
    MH_ASSERT(part.rows == parts[0].rows);
    cols += part.cols;
  }
  reshape(parts[0].rows, cols);
  std::fill_n(data_.data() + cols / panel_ * panel_ * rows_, data_.size() - cols / panel_ * panel_ * rows_,
              0.0f);
  int64_t column = 0;
  for (const auto& part : parts) {
    for (int64_t j = 0; j < part.cols;) {
      const int64_t in_panel = (column + j) % panel_;
      const int64_t run = std::min(panel_ - in_panel, part.cols - j);
      float* to = data_.data() + (column + j) / panel_ * panel_ * rows_ + in_panel;
      for (int64_t k = 0; k < rows_; ++k) {
        std::memcpy(to + k * panel_, part.row(k) + j, static_cast<size_t>(run) * sizeof(float));
      }
      j += run;
    }
    column += part.cols;
  }
}

void PackedMatrix::pack_transposed(std::span<const ConstMatrixView> parts) {
  MH_ASSERT(!parts.empty());
  int64_t rows = 0;
  for (const auto& part : parts) {
    MH_ASSERT(part.rows == parts[0].rows);
    rows += part.cols;
  }
  reshape(rows, parts[0].rows);
  int64_t k0 = 0;
  for (const auto& part : parts) {
    // A panel is filled in squares of 16 columns, so that both sides stay in the nearest cache.
    parallel_for((cols_ + panel_ - 1) / panel_, [&](int64_t p) {
      float* to = data_.data() + p * panel_ * rows_ + k0 * panel_;
      for (int64_t k = 0; k < part.cols; k += 16) {
        const int64_t k_end = std::min(k + 16, part.cols);
        for (int64_t j = 0; j < panel_; ++j) {
          const int64_t column = p * panel_ + j;
          if (column < cols_) {
            for (int64_t kk = k; kk < k_end; ++kk) to[kk * panel_ + j] = part(column, kk);
          } else {
            for (int64_t kk = k; kk < k_end; ++kk) to[kk * panel_ + j] = 0;
          }
        }
      }
    });
    k0 += part.cols;
  }
}

void detail::multiply_rows(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write) {
  HWY_DYNAMIC_DISPATCH(multiply_rows)(a, b, c, write == Write::kAdd);
}

void detail::run_row_tasks(int64_t rows, void (*run)(void*, int64_t, int64_t), void* body) {
  mh::parallel_for((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    run(body, task * kRowsPerTask, std::min(rows, (task + 1) * kRowsPerTask));
  });
}

void check_product(ConstMatrixView a, const PackedMatrix& b, ConstMatrixView c) {
  if (a.cols != b.rows() || c.rows != a.rows || c.cols != b.cols()) {
    throw ShapeError(fmt::format("multiply: [{},{}] x [{},{}] into [{},{}]", a.rows, a.cols, b.rows(),
                                 b.cols(), c.rows, c.cols));
  }
}

void multiply(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write) {
  multiply(a, b, c, write, [](int64_t, int64_t) {});
}

void multiply_transposed(ConstMatrixView a, ConstMatrixView b, MatrixView c, Write write) {
  if (a.rows != b.rows || c.rows != a.cols || c.cols != b.cols) {
    throw ShapeError(fmt::format("multiply_transposed: [{},{}]^T x [{},{}] into [{},{}]", a.rows, a.cols,
                                 b.rows, b.cols, c.rows, c.cols));
  }
  const int64_t panel = HWY_DYNAMIC_DISPATCH(panel_width)();
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
