#include "multihead/kernels/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/rotary_table.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/rotary.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// One head: `half` pairs turned by the angles whose cosines and sines lie in `table`; the rest is copied.
/// sign 1 turns, -1 turns back. y may be x: a pair is read before it is written.
template <RotaryPairs pairs>
HWY_INLINE void rotate_head(const float* x, float* y, const float* table, int half, int d_head, float sign) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const float *cosines = table, *sines = table + half;
  const auto signs = hn::Set(d, sign);
  int i = 0;
  for (; i + lanes <= half; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    if constexpr (pairs == RotaryPairs::kHalves) {
      a = hn::LoadU(d, x + i);
      b = hn::LoadU(d, x + half + i);
    } else {
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
    }
    const auto c = hn::LoadU(d, cosines + i), s = hn::Mul(signs, hn::LoadU(d, sines + i));
    const auto turned_a = hn::NegMulAdd(b, s, hn::Mul(a, c));
    const auto turned_b = hn::MulAdd(a, s, hn::Mul(b, c));
    if constexpr (pairs == RotaryPairs::kHalves) {
      hn::StoreU(turned_a, d, y + i);
      hn::StoreU(turned_b, d, y + half + i);
    } else {
      hn::StoreInterleaved2(turned_a, turned_b, d, y + 2 * i);
    }
  }
  for (; i < half; ++i) {
    const int at = pairs == RotaryPairs::kHalves ? i : 2 * i;
    const int other = pairs == RotaryPairs::kHalves ? half + i : 2 * i + 1;
    const float a = x[at], b = x[other], c = cosines[i], s = sign * sines[i];
    y[at] = a * c - b * s;
    y[other] = b * c + a * s;
  }
  if (x != y) std::copy(x + 2 * half, x + d_head, y + 2 * half);
}

}  // namespace

void rotate_row(const Rotary& rotary, const float* x, float* y, const float* table, float sign) {
  const auto head = rotary.pairs == RotaryPairs::kHalves ? rotate_head<RotaryPairs::kHalves>
                                                         : rotate_head<RotaryPairs::kNeighbours>;
  for (int h = 0; h < rotary.heads; ++h) {
    const int64_t at = int64_t{h} * rotary.d_head;
    head(x + at, y + at, table, rotary.rotated / 2, rotary.d_head, sign);
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(rotate_row);

namespace {

constexpr int kLargestHead = 1024;
constexpr int64_t kTaskNumbers = 16384;  // some microseconds

/// What rotate() and rotate_gradient() differ in.
struct Call {
  const char *name, *from, *to;
  float sign;
};

template <class View>
void check_matrix(const Call& call, const char* name, const View& view, int64_t rows, int64_t cols) {
  if (view.rows != rows || view.cols != cols) {
    throw ShapeError(fmt::format("{}: {} is [{},{}], expected [{},{}] (rows, heads x d_head)", call.name,
                                 name, view.rows, view.cols, rows, cols));
  }
  if (rows < 0 || (rows > 1 && view.stride < cols)) {
    throw ShapeError(
        fmt::format("{}: {} has {} rows, {} columns and stride {}; a stride must not be below the columns",
                    call.name, name, rows, cols, view.stride));
  }
  if (rows > 0 && view.data == nullptr) {
    throw ShapeError(fmt::format("{}: {} has {} rows but no data", call.name, name, rows));
  }
}

void check_positions(const Call& call, const Rotary& r, int64_t rows) {
  const size_t given = (r.offsets.empty() ? 0u : 1u) + (r.positions.empty() ? 0u : 1u);
  if (given > 1 || (given == 0 && rows > 0)) {
    throw UsageError(fmt::format("{}: {} of offsets and positions given, expected one", call.name,
                                 given == 0 ? "neither" : "both"));
  }
  if (!r.positions.empty() && r.positions.size() != static_cast<size_t>(rows)) {
    throw ShapeError(fmt::format("{}: positions has {} numbers, expected one for each of {} rows", call.name,
                                 r.positions.size(), rows));
  }
  for (const int32_t position : r.positions) {
    if (position < 0 || position >= kRotaryPositions) {
      throw UsageError(
          fmt::format("{}: positions holds {}, expected 0 to {}", call.name, position, kRotaryPositions - 1));
    }
  }
  if (r.offsets.empty()) return;
  if (r.offsets.front() != 0 || r.offsets.back() != rows) {
    throw ShapeError(fmt::format("{}: offsets run from {} to {}, expected from 0 to the {} rows", call.name,
                                 r.offsets.front(), r.offsets.back(), rows));
  }
  for (size_t s = 1; s < r.offsets.size(); ++s) {
    const int64_t length = int64_t{r.offsets[s]} - r.offsets[s - 1];
    if (length < 0 || length > kRotaryPositions) {
      throw ShapeError(fmt::format("{}: offsets go from {} to {} at sequence {}, expected 0 to {} rows more",
                                   call.name, r.offsets[s - 1], r.offsets[s], s - 1, kRotaryPositions));
    }
  }
}

void check(const Call& call, const Rotary& r, ConstMatrixView x, MatrixView y) {
  if (r.heads < 1) throw ShapeError(fmt::format("{}: heads is {}, expected at least 1", call.name, r.heads));
  if (r.d_head < 2 || r.d_head > kLargestHead) {
    throw ShapeError(fmt::format("{}: d_head is {}, expected 2 to {}", call.name, r.d_head, kLargestHead));
  }
  if (r.rotated < 2 || r.rotated > r.d_head || r.rotated % 2 != 0) {
    throw ShapeError(fmt::format("{}: rotated is {}, expected an even number from 2 to the {} of d_head",
                                 call.name, r.rotated, r.d_head));
  }
  if (!(r.base > 0 && std::isfinite(r.base))) {
    throw UsageError(fmt::format("{}: base is {}, expected a number above 0", call.name, r.base));
  }
  const RotaryScaling& s = r.scaling;
  if (s.kind != RotaryScaling::Kind::kNone && !(s.factor > 0 && std::isfinite(s.factor))) {
    throw UsageError(fmt::format("{}: scaling.factor is {}, expected a number above 0", call.name, s.factor));
  }
  using Kind = RotaryScaling::Kind;
  if (!(s.amplitude > 0 && std::isfinite(s.amplitude)))
    throw UsageError(
        fmt::format("{}: scaling.amplitude is {}, expected a number above 0", call.name, s.amplitude));
  if (s.kind == Kind::kFactors && (s.factors.size() != static_cast<size_t>(r.rotated / 2) ||
                                   !std::all_of(s.factors.begin(), s.factors.end(),
                                                [](double f) { return f > 0 && std::isfinite(f); }))) {
    throw UsageError(
        fmt::format("{}: scaling.factors has {} numbers, expected one above 0 for each of {} pairs",
                    call.name, s.factors.size(), r.rotated / 2));
  }
  if ((s.kind == Kind::kLlama3 || s.kind == Kind::kYarn) &&
      !(s.low_turns < s.high_turns && s.original_positions > 0)) {
    throw UsageError(
        fmt::format("{}: scaling.low_turns is {} and high_turns {}, expected less and more, of at least 1 "
                    "original position (got {})",
                    call.name, s.low_turns, s.high_turns, s.original_positions));
  }
  const int64_t cols = int64_t{r.heads} * r.d_head;
  check_matrix(call, call.from, x, x.rows, cols);
  check_matrix(call, call.to, y, x.rows, cols);
  check_positions(call, r, x.rows);
}

/// Calls visit(row, position) for rows [begin, end) in order.
template <class Visit>
void for_each_position(const Rotary& r, int64_t begin, int64_t end, Visit visit) {
  if (!r.positions.empty()) {
    for (int64_t i = begin; i < end; ++i) visit(i, r.positions[static_cast<size_t>(i)]);
    return;
  }
  auto next = std::upper_bound(r.offsets.begin(), r.offsets.end(), static_cast<int32_t>(begin));
  for (int64_t i = begin; i < end; ++i) {
    while (*next <= i) ++next;
    visit(i, static_cast<int32_t>(i) - *(next - 1));
  }
}

void turn(const Call& call, const Rotary& r, ConstMatrixView x, MatrixView y) {
  check(call, r, x, y);
  if (x.rows == 0) return;
  const auto table = detail::rotary_table(r.rotated, r.base, r.scaling);
  for_each_position(r, 0, x.rows, [&](int64_t, int32_t position) { table->prepare(position); });
  const int64_t rows = std::max<int64_t>(1, kTaskNumbers / x.cols);  // of a task
  parallel_for((x.rows + rows - 1) / rows, [&](int64_t task) {
    for_each_position(r, task * rows, std::min(x.rows, (task + 1) * rows), [&](int64_t i, int32_t position) {
      HWY_DYNAMIC_DISPATCH(rotate_row)(r, x.row(i), y.row(i), table->row(position), call.sign);
    });
  });
}

}  // namespace

void rotate(const Rotary& rotary, ConstMatrixView x, MatrixView y) {
  turn({"rotate", "x", "y", 1}, rotary, x, y);
}

void rotate_gradient(const Rotary& rotary, ConstMatrixView dy, MatrixView dx) {
  turn({"rotate_gradient", "dy", "dx", -1}, rotary, dy, dx);
}

}  // namespace mh
#endif
