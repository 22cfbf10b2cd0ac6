#include "multihead/autograd/replace.h"

#include <algorithm>

#include "multihead/kernels/elementwise.h"

namespace mh {
namespace {

/// A copy of x, in which put(to, from) has changed `width` numbers of each of these rows.
template <class Put>
Var changed_copy(Tape& tape, Var x, std::span<const int32_t> rows, int64_t left, ConstMatrixView numbers,
                 const Put& put) {
  MH_ASSERT(numbers.rows == 1 || numbers.rows == static_cast<int64_t>(rows.size()));
  MH_ASSERT(0 <= left && left + numbers.cols <= x.cols());
  Var y = tape.make(x.rows(), x.cols(), {x});
  copy_or_add(x.value(), y.value(), Write::kOverwrite);
  for (size_t i = 0; i < rows.size(); ++i)
    put(y.value().row(rows[i]) + left, numbers.row(numbers.rows == 1 ? 0 : static_cast<int64_t>(i)));
  return y;
}

}  // namespace

Var replace(Tape& tape, Var x, std::span<const int32_t> rows, int64_t left, ConstMatrixView numbers) {
  const int64_t width = numbers.cols;
  Var y = changed_copy(tape, x, rows, left, numbers,
                       [&](float* to, const float* from) { std::copy_n(from, width, to); });
  const std::span<int32_t> kept = tape.arena().array<int32_t>(static_cast<int64_t>(rows.size()));
  std::copy(rows.begin(), rows.end(), kept.begin());
  // dx = dy, and 0 where it was replaced
  tape.record(y, [&tape, x, y, kept, left, width] {
    if (!x.wants_gradient()) return;
    for (const int32_t row : kept) std::fill_n(y.gradient().row(row) + left, width, 0.0f);
    const Tape::Target dx = tape.gradient_of(x);
    copy_or_add(y.gradient(), dx.gradient, dx.write);
  });
  return y;
}

Var add_constants(Tape& tape, Var x, std::span<const int32_t> rows, int64_t left, ConstMatrixView numbers) {
  Var y = changed_copy(tape, x, rows, left, numbers, [&](float* to, const float* from) {
    for (int64_t j = 0; j < numbers.cols; ++j) {
      if (from[j] != 0) to[j] += from[j];  // -0 + 0 would be 0
    }
  });
  tape.record(y, [&tape, x, y] {
    if (!x.wants_gradient()) return;
    const Tape::Target dx = tape.gradient_of(x);
    copy_or_add(y.gradient(), dx.gradient, dx.write);
  });
  return y;
}

Var replace_columns(Tape& tape, Var x, int64_t left, Var columns) {
  const int64_t right = left + columns.cols();
  MH_ASSERT(columns.rows() == x.rows() && 0 <= left && right <= x.cols());
  Var y = tape.make(x.rows(), x.cols(), {x, columns});
  copy_or_add(x.value(), y.value(), Write::kOverwrite);
  copy_or_add(columns.value(), y.value().columns_between(left, right), Write::kOverwrite);
  // d columns = dy there;  dx = dy, and 0 there
  tape.record(y, [&tape, x, y, columns, left, right] {
    const MatrixView there = y.gradient().columns_between(left, right);
    if (columns.wants_gradient()) {
      const Tape::Target d = tape.gradient_of(columns);
      copy_or_add(there, d.gradient, d.write);
    }
    if (!x.wants_gradient()) return;
    for (int64_t i = 0; i < there.rows; ++i) std::fill_n(there.row(i), there.cols, 0.0f);
    const Tape::Target dx = tape.gradient_of(x);
    copy_or_add(y.gradient(), dx.gradient, dx.write);
  });
  return y;
}

}  // namespace mh
