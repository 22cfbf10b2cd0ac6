#include "multihead/tensor/weight.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"

namespace mh {

Weight& Weight::operator=(const Weight& other) {
  if (this == &other) return *this;
  rows_ = other.rows_;
  cols_ = other.cols_;
  const bool own = other.is_own();
  own_ = own ? other.own_ : Tensor();
  elsewhere_ = own ? StoredMatrix() : other.elsewhere_;
  keeper_ = own ? nullptr : other.keeper_;
  in_file_ = other.in_file_;
  source_ = own ? nullptr : other.source_;
  transposed_ = other.transposed_;
  is_own_.store(own, std::memory_order_release);
  return *this;
}

Weight& Weight::operator=(Weight&& other) noexcept {
  if (this == &other) return *this;
  rows_ = std::exchange(other.rows_, 0);
  cols_ = std::exchange(other.cols_, 0);
  own_ = std::exchange(other.own_, Tensor());
  elsewhere_ = std::exchange(other.elsewhere_, StoredMatrix());
  keeper_ = std::move(other.keeper_);
  in_file_ = other.in_file_;
  source_ = std::move(other.source_);
  transposed_ = other.transposed_;
  is_own_.store(other.is_own(), std::memory_order_release);
  other.is_own_.store(true, std::memory_order_release);
  return *this;
}

BorrowedMatrix Weight::borrow() const {
  if (!is_converted()) {
    const StoredMatrix matrix = stored();
    if (is_own() || !in_file_ || size() == 0) return {.matrix = matrix};
    const auto let_go = [matrix, file = keeper_](const void*) {
      const std::byte* const end = matrix.at(matrix.rows - 1, matrix.cols - 1) + number_size(matrix.type);
      release_mapped(matrix.data, static_cast<size_t>(end - matrix.data));
    };
    return {.matrix = matrix, .keeper = std::shared_ptr<const void>(matrix.data, let_go)};
  }
  auto numbers = std::make_shared<Tensor>(transposed_ ? cols_ : rows_, transposed_ ? rows_ : cols_);
  constexpr int64_t kRowsAtOnce = 32;
  parallel_for((numbers->rows() + kRowsAtOnce - 1) / kRowsAtOnce, [&](int64_t task) {
    const int64_t begin = task * kRowsAtOnce, end = std::min(begin + kRowsAtOnce, numbers->rows());
    source_->read_rows(begin, end, numbers->view().row(begin));
  });
  source_->release();
  const StoredMatrix matrix = StoredMatrix::of(std::as_const(*numbers).view());
  return {.matrix = transposed_ ? matrix.transposed() : matrix, .keeper = std::move(numbers)};
}

void Weight::read_row(int64_t i, float* to) const {
  if (is_converted() && !transposed_) return source_->read_rows(i, i + 1, to);
  stored().read_row(i, 0, cols_, to);
}

void Weight::take_memory() const {
  static std::mutex one_at_a_time;  // rare: once a weight, outside of inference
  std::lock_guard lock(one_at_a_time);
  if (is_own()) return;
  Tensor numbers(rows_, cols_);
  const BorrowedMatrix converted = source_ ? borrow() : BorrowedMatrix{.matrix = elsewhere_};
  for (int64_t i = 0; i < rows_ && converted.matrix.data != nullptr; ++i)
    converted.matrix.read_row(i, 0, cols_, numbers.view().row(i));
  own_ = std::move(numbers);
  is_own_.store(true, std::memory_order_release);
}

}  // namespace mh
