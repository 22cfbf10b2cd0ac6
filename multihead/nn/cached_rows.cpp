#include "multihead/nn/cached_rows.h"

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/half_rows.h"

namespace mh {
namespace {

/// Room for so many numbers, at least twice as many as before, so that rows are seldom copied.
template <class T>
void grow(AlignedBuffer<T>& numbers, int64_t needed, int64_t kept) {
  if (needed <= numbers.size()) return;
  AlignedBuffer<T> larger(std::max(needed, 2 * numbers.size()));
  std::copy_n(numbers.data(), kept, larger.data());
  numbers = std::move(larger);
}

}  // namespace

void CachedRows::start(CacheType type, int64_t key_width, int64_t value_width) {
  if (type == CacheType::kBFloat16) {
    numbers_ = {};
  } else {
    halves_ = {};
  }
  type_ = type;
  key_width_ = key_width;
  value_width_ = value_width;
}

void CachedRows::make_room(int64_t rows, int64_t kept) {
  if (type_ == CacheType::kBFloat16) {
    grow(halves_, rows * width(), kept * width());
  } else {
    grow(numbers_, rows * width(), kept * width());
  }
}

void CachedRows::write(int64_t first, Var keys, Var values) {
  MH_ASSERT(keys.cols() == key_width_ && values.cols() == value_width_);
  if (type_ == CacheType::kBFloat16) {
    const HalfView to(halves_.data() + first * width(), keys.rows(), width());
    round_to_halves(keys.value(), to.columns_between(0, key_width_));
    round_to_halves(values.value(), to.columns_between(key_width_, to.cols));
  } else {
    const MatrixView to(numbers_.data() + first * width(), keys.rows(), width());
    copy_or_add(keys.value(), to.columns_between(0, key_width_), Write::kOverwrite);
    copy_or_add(values.value(), to.columns_between(key_width_, to.cols), Write::kOverwrite);
  }
}

KeysAndValues CachedRows::read(Tape& tape, int64_t count) {
  if (type_ == CacheType::kBFloat16) {
    const ConstHalfView all(halves_.data(), count, width());
    return {.half_keys = all.columns_between(0, key_width_),
            .half_values = all.columns_between(key_width_, all.cols)};
  }
  const MatrixView all(numbers_.data(), count, width());
  return {.keys = tape.constant(all.columns_between(0, key_width_)),
          .values = tape.constant(all.columns_between(key_width_, all.cols))};
}

}  // namespace mh
