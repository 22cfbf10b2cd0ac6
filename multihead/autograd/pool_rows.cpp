#include "multihead/autograd/pool_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/autograd/destination.h"

namespace mh {
namespace {

template <class T>
std::span<T> kept(Tape& tape, std::span<const T> numbers) {
  const std::span<T> copy = tape.arena().array<T>(static_cast<int64_t>(numbers.size()));
  std::copy(numbers.begin(), numbers.end(), copy.begin());
  return copy;
}

double length_of(const float* row, int64_t size) {
  constexpr double kLeast = 1e-12;
  double sum = 0;
  for (int64_t c = 0; c < size; ++c) sum += static_cast<double>(row[c]) * static_cast<double>(row[c]);
  return std::max(std::sqrt(sum), kLeast);
}

void fill_zeros(MatrixView to) {
  for (int64_t i = 0; i < to.rows; ++i) std::fill_n(to.row(i), to.cols, 0.0f);
}

}  // namespace

Var weigh_rows(Tape& tape, Var x, std::span<const int32_t> given_offsets,
               std::span<const double> given_weights) {
  const auto offsets = kept(tape, given_offsets);
  const auto weights = kept(tape, given_weights);
  MH_ASSERT(offsets.back() == x.rows() && static_cast<int64_t>(weights.size()) == x.rows());
  Var y = tape.make(static_cast<int64_t>(offsets.size()) - 1, x.cols(), {x});
  std::vector<double> sums(static_cast<size_t>(x.cols()));
  for (int64_t s = 0; s < y.rows(); ++s) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int32_t r = offsets[static_cast<size_t>(s)]; r < offsets[static_cast<size_t>(s) + 1]; ++r) {
      const double weight = weights[static_cast<size_t>(r)];
      if (weight == 0) continue;
      const float* const row = x.value().row(r);
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += weight * static_cast<double>(row[c]);
    }
    for (size_t c = 0; c < sums.size(); ++c) y.value().row(s)[c] = static_cast<float>(sums[c]);
  }
  // dx_r = weights[r] dy_s
  tape.record(y, [&tape, x, y, offsets, weights] {
    const Destination dx(tape, x);
    for (int64_t s = 0; s < y.rows(); ++s) {
      for (int32_t r = offsets[static_cast<size_t>(s)]; r < offsets[static_cast<size_t>(s) + 1]; ++r) {
        const auto weight = static_cast<float>(weights[static_cast<size_t>(r)]);
        for (int64_t c = 0; c < x.cols(); ++c) dx.written(r, c) = weight * y.gradient()(s, c);
      }
    }
    dx.finish();
  });
  return y;
}

Var take_rows(Tape& tape, Var x, std::span<const int32_t> rows) {
  // Each is the last row of its part but the last part's, which ends with x; the others weigh nothing.
  std::vector<int32_t> offsets(rows.size() + 1, 0);
  std::vector<double> weights(static_cast<size_t>(x.rows()), 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    MH_ASSERT(rows[i] >= offsets[i] && rows[i] < x.rows());
    offsets[i + 1] = rows[i] + 1;
    weights[static_cast<size_t>(rows[i])] = 1;
  }
  MH_ASSERT(!rows.empty());
  offsets.back() = static_cast<int32_t>(x.rows());
  return weigh_rows(tape, x, offsets, weights);
}

Var max_rows(Tape& tape, Var x, std::span<const int32_t> offsets) {
  Var y = tape.make(static_cast<int64_t>(offsets.size()) - 1, x.cols(), {x});
  const auto rows = tape.arena().array<int32_t>(y.rows() * y.cols());  // of the largest; -1: none
  for (int64_t s = 0; s < y.rows(); ++s) {
    int32_t* const of = rows.data() + s * y.cols();
    const int32_t begin = offsets[static_cast<size_t>(s)], end = offsets[static_cast<size_t>(s) + 1];
    for (int64_t c = 0; c < y.cols(); ++c) {
      of[c] = begin < end ? begin : -1;
      for (int32_t r = begin + 1; r < end; ++r) {
        if (x.value()(r, c) > x.value()(of[c], c)) of[c] = r;
      }
      y.value()(s, c) = begin < end ? x.value()(of[c], c) : 0;
    }
  }
  tape.record(y, [&tape, x, y, rows] {
    const Destination dx(tape, x);
    fill_zeros(dx.written);
    for (int64_t s = 0; s < y.rows(); ++s) {
      for (int64_t c = 0; c < y.cols(); ++c) {
        const int32_t row = rows[static_cast<size_t>(s * y.cols() + c)];
        if (row >= 0) dx.written(row, c) = y.gradient()(s, c);
      }
    }
    dx.finish();
  });
  return y;
}

void divide_by_lengths(ConstMatrixView x, MatrixView y) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const double length = length_of(x.row(r), x.cols);
    for (int64_t c = 0; c < x.cols; ++c) y(r, c) = static_cast<float>(static_cast<double>(x(r, c)) / length);
  }
}

Var unit_rows(Tape& tape, Var x) {
  Var y = tape.make(x.rows(), x.cols(), {x});
  divide_by_lengths(x.value(), y.value());
  // dx = (dy - y (y . dy)) / |x|; with |x| held, dy / |x|
  tape.record(y, [&tape, x, y] {
    const Destination dx(tape, x);
    for (int64_t r = 0; r < x.rows(); ++r) {
      const double length = length_of(x.value().row(r), x.cols());
      double along = 0;
      for (int64_t c = 0; c < x.cols() && !tape.stream_alone(); ++c)
        along += static_cast<double>(y.value()(r, c)) * static_cast<double>(y.gradient()(r, c));
      for (int64_t c = 0; c < x.cols(); ++c) {
        const double across =
            static_cast<double>(y.gradient()(r, c)) - along * static_cast<double>(y.value()(r, c));
        dx.written(r, c) = static_cast<float>(across / length);
      }
    }
    dx.finish();
  });
  return y;
}

}  // namespace mh
