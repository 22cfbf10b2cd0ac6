#include "multihead/tensor/weight.h"

#include <mutex>
#include <utility>

namespace mh {

Weight& Weight::operator=(const Weight& other) {
  if (this == &other) return *this;
  rows_ = other.rows_;
  cols_ = other.cols_;
  const bool own = other.is_own();
  own_ = own ? other.own_ : Tensor();
  elsewhere_ = own ? StoredMatrix() : other.elsewhere_;
  keeper_ = own ? nullptr : other.keeper_;
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
  is_own_.store(other.is_own(), std::memory_order_release);
  other.is_own_.store(true, std::memory_order_release);
  return *this;
}

void Weight::take_memory() const {
  static std::mutex one_at_a_time;  // rare: once a weight, outside of inference
  std::lock_guard lock(one_at_a_time);
  if (is_own()) return;
  Tensor numbers(rows_, cols_);
  for (int64_t i = 0; i < rows_ && elsewhere_.data != nullptr; ++i)
    elsewhere_.read_row(i, 0, cols_, numbers.view().row(i));
  own_ = std::move(numbers);
  is_own_.store(true, std::memory_order_release);
}

}  // namespace mh
