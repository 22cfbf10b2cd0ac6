// Tensor: a matrix of float32 that owns its memory, [rows, cols], one row after the other. A vector is a
// matrix of one row.
//
// Parameters, tables and small results are tensors. The values of a training step are not: they lie in an
// Arena (tensor/arena.h). A function that only reads or writes numbers takes a view (base/matrix_view.h),
// which view() returns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "multihead/base/aligned.h"
#include "multihead/base/error.h"
#include "multihead/base/matrix_view.h"

namespace mh {

/// T is float or double. The constructor sets all numbers to 0. It throws ShapeError on sizes below 0 or beyond
/// 2^60 numbers.
template <class T>
class BasicTensor {
 public:
  BasicTensor() = default;
  BasicTensor(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), data_(checked_size(rows, cols)) {
    fill(0);
  }

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t size() const { return rows_ * cols_; }
  T* data() { return data_.data(); }
  const T* data() const { return data_.data(); }
  T& operator()(int64_t i, int64_t j) { return data_[i * cols_ + j]; }
  const T& operator()(int64_t i, int64_t j) const { return data_[i * cols_ + j]; }
  BasicMatrixView<T> view() { return {data(), rows_, cols_}; }
  BasicMatrixView<const T> view() const { return {data(), rows_, cols_}; }
  void fill(T value) { std::fill_n(data(), size(), value); }

 private:
  static int64_t checked_size(int64_t rows, int64_t cols) {
    constexpr int64_t kMost = int64_t{1} << 60;
    if (rows < 0 || cols < 0 || (cols > 0 && rows > kMost / cols)) {
      throw ShapeError("invalid tensor shape [" + std::to_string(rows) + ", " + std::to_string(cols) + "]");
    }
    return rows * cols;
  }

  int64_t rows_ = 0, cols_ = 0;
  AlignedBuffer<T> data_;
};

using Tensor = BasicTensor<float>;

inline Tensor copied(ConstMatrixView from) {
  Tensor to(from.rows, from.cols);
  for (int64_t i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.cols, to.view().row(i));
  return to;
}

}  // namespace mh
