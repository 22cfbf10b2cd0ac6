// Gradients of a product Y = X B with respect to its rows: dX = dY B^T, with the numbers that B has exactly.
//
// Panels of fewer bits than float32 (kernels/packed_matrix.h) hold columns n of B [K, N], and what is summed runs over these. So
// they serve as the left factor of
//
//   dX^T [K, M] = B dY^T
//
// for which a window of them, some rows k times a block of n, is made float32 numbers in memory that stays in the cache; dY^T is
// copied into float32 panels, a block of n at a time. Sums run over n in the blocks of a product with float32 panels of B^T, so
// the result has the bits of that one, and no copy of B in float32 is kept.
#pragma once

#include <cstdint>

#include "multihead/base/matrix_view.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/packed_matrix.h"

namespace mh {

namespace detail {
/// dX (+)= dY B^T for panels of B of fewer bits than float32.
void multiply_by_windows(ConstMatrixView dy, const PackedMatrix& b, MatrixView dx, Write write);
}  // namespace detail

/// dX^T [K, M] (+)= B' dY^T for columns [column, column + dY.cols) B' of B, dY [M, some columns], on the calling thread.
/// REQUIRES: b's panels are of fewer bits than float32, and exact.
void multiply_window(ConstMatrixView dy, const PackedMatrix& b, int64_t column, MatrixView dx_t, bool add);

/// dX (+)= dY B^T, dY [M, N], dX [M, K]. make_rows(begin, end) makes a block of rows of dY before it is read, on any thread.
template <class MakeRows>
void multiply_gradient(ConstMatrixView dy, const GradientFactor& b, MatrixView dx, Write write,
                       MakeRows&& make_rows) {
  for_row_blocks(dy.rows, [&](int64_t begin, int64_t end) {
    make_rows(begin, end);
    if (b.transposed)
      detail::multiply_rows(dy.rows_between(begin, end), b.panels, dx.rows_between(begin, end), write);
  });
  if (!b.transposed) detail::multiply_by_windows(dy, b.panels, dx, write);
}

}  // namespace mh
