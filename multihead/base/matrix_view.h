// A view of a matrix that somebody else owns: `rows` rows of `cols` numbers, `stride` numbers from one row
// to the next. It is in base because the kernels use it and do not know Tensor, whose view() returns one.
#pragma once

#include <cstdint>
#include <type_traits>

#include "multihead/base/error.h"

namespace mh {

/// What becomes of the numbers that stood where a result goes.
enum class Write { kOverwrite, kAdd };

namespace detail {
/// Throws ShapeError: "rows [2, 9) of a matrix that has 5".
[[noreturn]] void throw_outside(const char* what, int64_t begin, int64_t end, int64_t all);
}  // namespace detail

/// REQUIRES: the owner outlives the view. stride >= cols. A view of nothing has data == nullptr.
template <class T>
struct BasicMatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from one row to the next

  BasicMatrixView() = default;
  BasicMatrixView(T* d, int64_t r, int64_t c) : data(d), rows(r), cols(c), stride(c) {}
  BasicMatrixView(T* d, int64_t r, int64_t c, int64_t s) : data(d), rows(r), cols(c), stride(s) {}
  /// Converts a writable view into a read-only one.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  BasicMatrixView(const BasicMatrixView<U>& other)  // NOLINT: implicit on purpose
      : data(other.data), rows(other.rows), cols(other.cols), stride(other.stride) {}

  T* row(int64_t i) const { return data + i * stride; }
  T& operator()(int64_t i, int64_t j) const { return data[i * stride + j]; }
  int64_t size() const { return rows * cols; }
  bool empty() const { return data == nullptr || rows == 0 || cols == 0; }
  bool contiguous() const { return stride == cols || rows <= 1; }

  /// Rows [begin, end). Throws ShapeError when the matrix does not have them.
  BasicMatrixView rows_between(int64_t begin, int64_t end) const {
    if (begin < 0 || begin > end || end > rows) detail::throw_outside("rows", begin, end, rows);
    return {data + begin * stride, end - begin, cols, stride};
  }
  /// Columns [begin, end): one head of [N, H*D] is columns_between(h*D, (h+1)*D). Throws
  /// ShapeError.
  BasicMatrixView columns_between(int64_t begin, int64_t end) const {
    if (begin < 0 || begin > end || end > cols) detail::throw_outside("columns", begin, end, cols);
    return {data + begin, rows, end - begin, stride};
  }
};

using MatrixView = BasicMatrixView<float>;
using ConstMatrixView = BasicMatrixView<const float>;
/// Of bfloat16, each the upper half of a float32 (base/stored_matrix.h).
using HalfView = BasicMatrixView<uint16_t>;
using ConstHalfView = BasicMatrixView<const uint16_t>;

}  // namespace mh
