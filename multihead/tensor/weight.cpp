#include "multihead/tensor/weight.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "multihead/base/platform.h"
#include "multihead/base/thread_pool.h"

namespace mh {

BorrowedMatrix Weight::converted(const Converted& from) const {
  const auto [rows, cols] = from.transposed ? std::pair(cols_, rows_) : std::pair(rows_, cols_);
  auto numbers = std::make_shared<Tensor>(rows, cols);
  constexpr int64_t kRowsAtOnce = 32;
  parallel_for((rows + kRowsAtOnce - 1) / kRowsAtOnce, [&](int64_t task) {
    const int64_t begin = task * kRowsAtOnce, end = std::min(begin + kRowsAtOnce, numbers->rows());
    from.source->read_rows(begin, end, numbers->view().row(begin));
  });
  from.source->release();
  const StoredMatrix matrix = StoredMatrix::of(std::as_const(*numbers).view());
  return {.matrix = from.transposed ? matrix.transposed() : matrix, .keeper = std::move(numbers)};
}

BorrowedMatrix Weight::borrow() const {
  if (is_converted()) return converted(std::get<Converted>(from_));
  const StoredMatrix matrix = stored();
  const auto* const elsewhere = std::get_if<Elsewhere>(&from_);
  if (is_own() || elsewhere == nullptr || !elsewhere->in_file || size() == 0) return {.matrix = matrix};
  const auto let_go = [matrix, file = elsewhere->keeper](const void*) {
    const std::byte* const end = matrix.at(matrix.rows - 1, matrix.cols - 1) + number_size(matrix.type);
    release_mapped(matrix.data, static_cast<size_t>(end - matrix.data));
  };
  return {.matrix = matrix, .keeper = std::shared_ptr<const void>(matrix.data, let_go)};
}

const BlockMatrix* Weight::blocks(bool columns) const {
  if (!is_converted()) return nullptr;
  const auto& from = std::get<Converted>(from_);
  return from.transposed == columns ? from.source->blocks() : nullptr;
}

void Weight::release_blocks() const {
  if (is_converted()) std::get<Converted>(from_).source->release();
}

void Weight::read_row(int64_t i, float* to) const {
  if (is_converted()) {
    const auto& from = std::get<Converted>(from_);
    if (!from.transposed) return from.source->read_rows(i, i + 1, to);
  }
  stored().read_row(i, 0, cols_, to);
}

void Weight::take_memory() const {
  static std::mutex one_at_a_time;  // rare: once a weight, outside of inference
  std::lock_guard lock(one_at_a_time);
  if (is_own()) return;
  Tensor numbers(rows_, cols_);
  if (!std::holds_alternative<Zeros>(from_)) {
    const BorrowedMatrix from = borrow();
    for (int64_t i = 0; i < rows_; ++i) from.matrix.read_row(i, 0, cols_, numbers.view().row(i));
  }
  own_ = std::move(numbers);
  is_own_.value.store(true, std::memory_order_release);
}

}  // namespace mh
