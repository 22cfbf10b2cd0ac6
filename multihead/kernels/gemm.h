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

#include <cstdint>
#include <type_traits>

#include "multihead/base/aligned.h"
#include "multihead/base/matrix_view.h"
#include "multihead/kernels/packed_matrix.h"

namespace mh {

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
