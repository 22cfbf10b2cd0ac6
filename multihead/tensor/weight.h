// Weight: a matrix of a model whose numbers may stay in the file that it was loaded from.
//
// A weight [rows, cols] knows where its numbers are: in memory of its own, where training changes them, or
// in a file that is mapped into memory. There they stand as the file has them: float32 or bfloat16,
// transposed, or as columns of a fused matrix.
//
// Products read a weight through stored() and pack it into panels (kernels/gemm.h); that is the only copy
// that inference makes. Whoever asks for float32 rows (data(), view(), tensor()) gets them copied into
// memory of the weight's own, once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "multihead/base/stored_matrix.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// Several threads may read at once; writing is for one thread.
class Weight {
 public:
  Weight() = default;
  /// All numbers are 0. The memory is taken when somebody first asks for the numbers, so a model whose
  /// weights stay in a file never takes it.
  Weight(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), is_own_(false) {}
  Weight(Tensor numbers)
      : rows_(numbers.rows()), cols_(numbers.cols()), own_(std::move(numbers)) {}  // NOLINT
  /// Numbers in memory that is not its own, e.g. a mapped file; `keeper` keeps that memory alive.
  Weight(StoredMatrix elsewhere, std::shared_ptr<const void> keeper)
      : rows_(elsewhere.rows),
        cols_(elsewhere.cols),
        elsewhere_(elsewhere),
        keeper_(std::move(keeper)),
        is_own_(false) {}
  Weight(const Weight& other) { *this = other; }
  Weight& operator=(const Weight& other);
  Weight(Weight&& other) noexcept { *this = std::move(other); }
  Weight& operator=(Weight&& other) noexcept;

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t size() const { return rows_ * cols_; }

  /// Where the numbers are now, without a copy. Valid until they are changed or copied into memory.
  StoredMatrix stored() const {
    if (elsewhere_.data == nullptr) make_own();
    return is_own() ? StoredMatrix::of(own_.view()) : elsewhere_;
  }
  /// Whether the numbers are in the weight's own memory.
  bool is_own() const { return is_own_.load(std::memory_order_acquire); }

  Tensor& tensor() {
    make_own();
    elsewhere_ = {};
    keeper_.reset();
    return own_;
  }
  const Tensor& tensor() const {
    make_own();
    return own_;
  }
  float* data() { return tensor().data(); }
  const float* data() const { return tensor().data(); }
  float& operator()(int64_t i, int64_t j) { return tensor()(i, j); }
  const float& operator()(int64_t i, int64_t j) const { return tensor()(i, j); }
  MatrixView view() { return tensor().view(); }
  ConstMatrixView view() const { return tensor().view(); }
  void fill(float value) { tensor().fill(value); }

 private:
  void make_own() const {
    if (!is_own()) take_memory();
  }
  void take_memory() const;

  int64_t rows_ = 0, cols_ = 0;
  mutable Tensor own_;
  StoredMatrix elsewhere_;  // data == nullptr: zeros for which no memory was taken yet
  std::shared_ptr<const void> keeper_;
  mutable std::atomic<bool> is_own_{true};
};

}  // namespace mh
