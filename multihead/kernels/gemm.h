// Products of matrices: C = A B with B packed once, A [M, K], B [K, N], C [M, N]; and C = A^T B for the
// gradients of weights.
//
// B is copied into panels a few vectors wide, [K, panel] each, so that the inner loop reads it in order; A
// is read where it lies, a number at a time. Of many rows a task is a block of rows times all of B; what follows
// for those rows (a bias, an activation, a norm) runs in the same task while they are in the cache
// (`after_rows`). A few hundred rows are cut into as many blocks for each thread; where that makes too few tasks or too
// small ones, tasks are panels of B, and what follows comes behind the product. Sums run over k in order, in blocks that depend on the
// shape alone, so the result has the same bits for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/base/block_matrix.h"
#include "multihead/base/matrix_view.h"
#include "multihead/base/precision.h"
#include "multihead/base/stored_matrix.h"

namespace mh {

enum class Write { kOverwrite, kAdd };

/// The right factor B [K, N] of a product, copied into panels: of float32, or of the blocks that a file has.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// B = [parts[0] | parts[1] | ...], each [K, n_i], straight from where they are stored. When called again
  /// it uses the same memory.
  void pack(std::span<const StoredMatrix> parts);
  /// B = [parts[0] | parts[1] | ...]^T, each [N, k_i]: for dX = dY W^T and for logits = h E^T.
  void pack_transposed(std::span<const StoredMatrix> parts);
  /// B = [parts[0] | parts[1] | ...]^T, each [n_i, K], whose numbers stay blocks (kernels/block_panels.h), and are multiplied with
  /// rows of float32 or with rounded ones. let_go() is called whenever some MiB of them have been copied, so that no second copy
  /// of a large matrix stays in memory.
  void pack_transposed(std::span<const BlockMatrix* const> parts, Precision precision,
                       const std::function<void()>& let_go);
  void pack(const StoredMatrix& b) { pack({&b, 1}); }
  void pack_transposed(const StoredMatrix& b) { pack_transposed({&b, 1}); }
  void pack(ConstMatrixView b) { pack(StoredMatrix::of(b)); }
  void pack_transposed(ConstMatrixView b) { pack_transposed(StoredMatrix::of(b)); }

  int64_t rows() const { return rows_; }    // K
  int64_t cols() const { return cols_; }    // N
  int64_t panel() const { return panel_; }  // columns of a panel; the last panel is filled with zeros
  int64_t panels() const {
    if (has_blocks()) return static_cast<int64_t>(block_panels_.size());
    return panel_ > 0 ? (cols_ + panel_ - 1) / panel_ : 0;
  }
  /// Panel p: [K, panel], contiguous. REQUIRES: !has_blocks().
  const float* panel_data(int64_t p) const { return data_.data() + p * rows_ * panel_; }

  /// A panel that stays blocks: columns [column, column + width) of B.
  struct BlockPanel {
    BlockType type;
    int64_t column, width;
    int64_t at;  // bytes from the first panel
  };
  bool has_blocks() const { return !block_panels_.empty(); }
  Precision precision() const { return precision_; }
  /// Whether rows of A are rounded before they are multiplied (kernels/product_rows.h).
  bool rounds_rows() const { return has_blocks() && precision_ != Precision::kSame; }
  const BlockPanel& block_panel(int64_t p) const { return block_panels_[static_cast<size_t>(p)]; }
  const std::byte* block_data(int64_t p) const { return blocks_.data() + block_panel(p).at; }

 private:
  void reshape(int64_t rows, int64_t cols);
  void place(const StoredMatrix& part, int64_t k0, int64_t n0);

  int64_t rows_ = 0, cols_ = 0, panel_ = 0;
  Precision precision_ = Precision::kSame;
  AlignedBuffer<float> data_;
  std::vector<BlockPanel> block_panels_;  // empty: float32
  AlignedBuffer<std::byte> blocks_;
};

/// Rows of one task of multiply(): few enough for the cache, and fixed, so that results do not depend on
/// threads.
inline constexpr int64_t kRowsPerTask = 96;

namespace detail {
/// C[rows] (+)= A[rows] B on the calling thread.
void multiply_rows(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write);
/// Whether tasks of a product with so many rows are panels of B: few rows, or too few to give each thread a block.
bool by_panels(int64_t rows);
/// C (+)= A B; a task is some panels of B times all rows or, when they are more than 192, an even part of them.
void multiply_by_panels(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write);
/// Rows of one task where they are blocks of rows: kRowsPerTask, or up to twice as many where they make few tasks, which
/// then are even for the threads.
int64_t rows_of_product_task(int64_t rows);
void run_row_tasks(int64_t rows, int64_t rows_per_task, void (*run)(void*, int64_t begin, int64_t end),
                   void* body);
}  // namespace detail

/// Calls body(begin, end) for blocks of rows, in parallel.
template <class Body>
void for_row_blocks(int64_t rows, Body&& body, int64_t rows_per_task = kRowsPerTask) {
  using Plain = std::remove_reference_t<Body>;
  detail::run_row_tasks(
      rows, rows_per_task, [](void* p, int64_t begin, int64_t end) { (*static_cast<Plain*>(p))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

/// C (+)= A B, A [M, K], C [M, N]; after_rows(begin, end) follows for each finished block of rows, on the
/// same thread. Throws ShapeError when the shapes do not fit.
template <class AfterRows>
void multiply(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write, AfterRows&& after_rows);
void multiply(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write = Write::kOverwrite);

/// C = A B by blocks of rows, each in memory of its thread that stays in the cache: use(rows, begin, end) sees
/// C[begin, end) before it is gone, on the same thread. For products that are not shared by panels. REQUIRES: the
/// shapes fit.
template <class Use>
void multiply_and_use(ConstMatrixView a, const PackedMatrix& b, Use&& use);

/// C (+)= A^T B, A [K, M], B [K, N], C [M, N]: dW = X^T dY. Both are read where they lie, without packing.
void multiply_transposed(ConstMatrixView a, ConstMatrixView b, MatrixView c, Write write = Write::kOverwrite);

void check_product(ConstMatrixView a, const PackedMatrix& b, ConstMatrixView c);

template <class AfterRows>
void multiply(ConstMatrixView a, const PackedMatrix& b, MatrixView c, Write write, AfterRows&& after_rows) {
  if (detail::by_panels(a.rows)) {
    multiply(a, b, c, write);
    return for_row_blocks(a.rows, after_rows);
  }
  check_product(a, b, c);
  const auto task = [&](int64_t begin, int64_t end) {
    detail::multiply_rows(a.rows_between(begin, end), b, c.rows_between(begin, end), write);
    after_rows(begin, end);
  };
  for_row_blocks(a.rows, task, detail::rows_of_product_task(a.rows));
}

template <class Use>
void multiply_and_use(ConstMatrixView a, const PackedMatrix& b, Use&& use) {
  const auto task = [&](int64_t begin, int64_t end) {
    thread_local AlignedBuffer<float> memory;
    const MatrixView c(memory.get((end - begin) * b.cols()), end - begin, b.cols());
    detail::multiply_rows(a.rows_between(begin, end), b, c, Write::kOverwrite);
    use(c, begin, end);
  };
  for_row_blocks(a.rows, task, detail::rows_of_product_task(a.rows));
}

}  // namespace mh
