// Weight: a matrix of a model whose numbers may stay in the file that it was loaded from.
//
// A weight [rows, cols] knows where its numbers are:
//
//   - in memory of its own, where training changes them;
//   - in a file that is mapped into memory, as the file has them: float32, bfloat16 or float16, transposed, or as
//     columns of a fused matrix;
//   - in a file whose numbers must be converted to be read (NumberSource): quantised ones, or those whose rows
//     change places.
//
// Products borrow() a weight and pack it into panels (kernels/gemm.h), or its blocks() if it has them; that is the only copy
// that inference keeps. Whoever asks for float32 rows (data(), view(), tensor()) gets them copied into memory of the weight's
// own, once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "multihead/base/block_matrix.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// A matrix of numbers that are converted to float32 whenever they are read.
class NumberSource {
 public:
  virtual ~NumberSource() = default;
  /// Writes rows [begin, end) to `to`, row after row. Any number of threads may call it at once.
  virtual void read_rows(int64_t begin, int64_t end, float* to) const = 0;
  /// The same rows as they are stored, if they are blocks that products read as they are; otherwise null.
  virtual const BlockMatrix* blocks() const { return nullptr; }
  /// Lets the memory go that reading them took, until they are read again.
  virtual void release() const {}
};

/// Numbers of a weight, valid as long as this lives.
struct BorrowedMatrix {
  StoredMatrix matrix;
  std::shared_ptr<const void> keeper = nullptr;
};

/// Several threads may read at once; writing is for one thread.
class Weight {
 public:
  Weight() = default;
  /// All numbers are 0. The memory is taken when somebody first asks for the numbers, so a model whose
  /// weights stay in a file never takes it.
  Weight(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), is_own_(false) {}
  Weight(Tensor numbers)
      : rows_(numbers.rows()), cols_(numbers.cols()), own_(std::move(numbers)) {}  // NOLINT
  /// Numbers in memory that is not its own; `keeper` keeps that memory alive. in_file: it is mapped from a file,
  /// so that it may be let go after it was borrowed.
  Weight(StoredMatrix elsewhere, std::shared_ptr<const void> keeper, bool in_file = false)
      : rows_(elsewhere.rows),
        cols_(elsewhere.cols),
        from_(Elsewhere{elsewhere, std::move(keeper), in_file}),
        is_own_(false) {}
  /// Numbers that are converted: those of `source`, [rows, cols], or if it is transposed [cols, rows].
  Weight(int64_t rows, int64_t cols, std::shared_ptr<const NumberSource> source, bool transposed)
      : rows_(rows), cols_(cols), from_(Converted{std::move(source), transposed}), is_own_(false) {}

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t size() const { return rows_ * cols_; }

  /// Where the numbers are now; those that must be converted are copied into memory first. Valid until they
  /// are changed or copied into memory.
  StoredMatrix stored() const {
    const auto* const elsewhere = std::get_if<Elsewhere>(&from_);
    if (elsewhere != nullptr && !is_own()) return elsewhere->matrix;
    make_own();
    return StoredMatrix::of(own_.view());
  }
  /// The same for a short time: with what this returns, the memory of converted numbers is let go, and that of
  /// mapped ones, which are read from the file again when they are next needed.
  BorrowedMatrix borrow() const;
  /// What stored() and borrow() give. Reads nothing.
  NumberType number_type() const {
    const auto* const elsewhere = std::get_if<Elsewhere>(&from_);
    return elsewhere != nullptr && !is_own() ? elsewhere->matrix.type : NumberType::kFloat32;
  }
  /// Whether rows must be converted to be read: whoever needs a few of them reads these (read_row()).
  bool is_converted() const { return std::holds_alternative<Converted>(from_) && !is_own(); }
  /// The blocks whose rows are the weight's rows, or if `columns` its columns; null where the numbers are not such blocks.
  const BlockMatrix* blocks(bool columns) const;
  /// Lets the memory go that reading blocks() took, until they are read again.
  void release_blocks() const;
  /// Writes row i to `to`.
  void read_row(int64_t i, float* to) const;
  /// Whether the numbers are in the weight's own memory.
  bool is_own() const { return is_own_.value.load(std::memory_order_acquire); }

  Tensor& tensor() {
    make_own();
    from_ = Zeros{};
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
  struct Zeros {};
  struct Elsewhere {
    StoredMatrix matrix;
    std::shared_ptr<const void> keeper;
    bool in_file;
  };
  struct Converted {
    std::shared_ptr<const NumberSource> source;
    bool transposed;
  };
  /// Copied with the weight.
  struct Flag {
    Flag(bool set) : value(set) {}  // NOLINT
    Flag(const Flag& other) : value(other.value.load(std::memory_order_acquire)) {}
    Flag& operator=(const Flag& other) {
      value.store(other.value.load(std::memory_order_acquire), std::memory_order_release);
      return *this;
    }
    std::atomic<bool> value;
  };
  void make_own() const {
    if (!is_own()) take_memory();
  }
  void take_memory() const;
  BorrowedMatrix converted(const Converted& numbers) const;

  int64_t rows_ = 0, cols_ = 0;
  std::variant<Zeros, Elsewhere, Converted> from_;  // until the numbers are in own_
  mutable Tensor own_;
  mutable Flag is_own_{true};
};

}  // namespace mh
