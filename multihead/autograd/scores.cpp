#include "multihead/autograd/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/autograd/plain_loops.h"
#include "multihead/base/error.h"

namespace mh::ops {

using detail::filled;
using detail::pass_on;
using detail::sum_over;

// y_i = x(r_i, c_i);  dx(r_i, c_i) += dy_i
template <class T>
BasicVar<T> pick(BasicTape<T>& tape, BasicVar<T> x, std::span<const int32_t> rows,
                 std::span<const int32_t> columns) {
  struct Place {
    int32_t row, column;
  };
  if (rows.size() != columns.size())
    throw ShapeError(fmt::format("pick: {} rows and {} columns", rows.size(), columns.size()));
  const auto places = tape.arena().template array<Place>(static_cast<int64_t>(rows.size()));
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = {rows[i], columns[i]};
    if (0 <= rows[i] && rows[i] < x.rows() && 0 <= columns[i] && columns[i] < x.cols()) continue;
    throw ShapeError(
        fmt::format("pick: row {}, column {} of a [{},{}] matrix", rows[i], columns[i], x.rows(), x.cols()));
  }
  BasicVar<T> y = filled(tape, static_cast<int64_t>(places.size()), 1, {x}, [&](int64_t i, int64_t) {
    const Place& place = places[static_cast<size_t>(i)];
    return x.value()(place.row, place.column);
  });
  tape.record(y, [&tape, x, y, places] {
    if (!x.wants_gradient()) return;
    const auto dx = tape.gradient_of(x);
    for (int64_t i = 0; dx.write == Write::kOverwrite && i < x.rows(); ++i)
      std::fill_n(dx.gradient.row(i), x.cols(), T(0));
    for (size_t i = 0; i < places.size(); ++i)
      dx.gradient(places[i].row, places[i].column) += y.gradient()(static_cast<int64_t>(i), 0);
  });
  return y;
}

// y_j = x_j - log sum_k exp(x_k);  dx_j = dy_j - exp(y_j) sum_k dy_k
// Sums are in double: that of the 49,152 words of SmolLM2 in float is off by 2e-4.
template <class T>
BasicVar<T> log_softmax(BasicTape<T>& tape, BasicVar<T> x) {
  BasicVar<T> y = tape.make(x.rows(), x.cols(), {x});
  for (int64_t i = 0; i < x.rows(); ++i) {
    const T* row = x.value().row(i);
    const T largest = x.cols() > 0 ? *std::max_element(row, row + x.cols()) : T(0);
    const T log_sum = largest + static_cast<T>(std::log(sum_over<double>(x.cols(), [&](int64_t k) {
                        return static_cast<double>(std::exp(row[k] - largest));
                      })));
    for (int64_t j = 0; j < x.cols(); ++j) y.value()(i, j) = row[j] - log_sum;
  }
  tape.record(y, [&tape, x, y] {
    const auto dy = y.gradient();
    const auto sums = tape.arena().template array<T>(x.rows());
    for (int64_t i = 0; i < x.rows(); ++i)
      sums[static_cast<size_t>(i)] = static_cast<T>(
          sum_over<double>(x.cols(), [&](int64_t k) { return static_cast<double>(dy(i, k)); }));
    pass_on(tape, x, [&](int64_t i, int64_t j) {
      return dy(i, j) - std::exp(y.value()(i, j)) * sums[static_cast<size_t>(i)];
    });
  });
  return y;
}

// c = a . b / (|a| |b|);  da = dc (b / (|a| |b|) - c a / |a|^2), and b likewise
template <class T>
BasicVar<T> cosines(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b) {
  if (a.rows() != b.rows() || a.cols() != b.cols())
    throw ShapeError(fmt::format("cosines: [{},{}] x [{},{}]", a.rows(), a.cols(), b.rows(), b.cols()));
  const auto product = [](BasicVar<T> x, BasicVar<T> y, int64_t i) {
    return sum_over<T>(x.cols(), [&](int64_t k) { return x.value()(i, k) * y.value()(i, k); });
  };
  const auto lengths = [product](BasicVar<T> x, BasicVar<T> y, int64_t i) {
    return std::sqrt(product(x, x, i)) * std::sqrt(product(y, y, i));
  };
  BasicVar<T> cosine = filled(tape, a.rows(), 1, {a, b}, [&](int64_t i, int64_t) {
    const T both = lengths(a, b, i);
    return both > 0 ? product(a, b, i) / both : T(0);
  });
  tape.record(cosine, [&tape, a, b, cosine, product, lengths] {
    const auto to = [&](BasicVar<T> x, BasicVar<T> other) {
      struct Factors {
        T other, own;
      };
      const auto factors = tape.arena().template array<Factors>(x.rows());
      for (int64_t i = 0; i < x.rows(); ++i) {
        const T both = lengths(x, other, i), d = cosine.gradient()(i, 0);
        const T own = tape.stream_alone() ? T(0) : -d * cosine.value()(i, 0) / product(x, x, i);
        factors[static_cast<size_t>(i)] = both > 0 ? Factors{d / both, own} : Factors{T(0), T(0)};
      }
      pass_on(tape, x, [&](int64_t i, int64_t j) {
        const Factors& by = factors[static_cast<size_t>(i)];
        return by.other * other.value()(i, j) + by.own * x.value()(i, j);
      });
    };
    to(a, b);
    to(b, a);
  });
  return cosine;
}

#define MH_SCORES_FOR(T)                                                                                     \
  template BasicVar<T> pick(BasicTape<T>&, BasicVar<T>, std::span<const int32_t>, std::span<const int32_t>); \
  template BasicVar<T> log_softmax(BasicTape<T>&, BasicVar<T>);                                              \
  template BasicVar<T> cosines(BasicTape<T>&, BasicVar<T>, BasicVar<T>);
MH_SCORES_FOR(float)
MH_SCORES_FOR(double)
#undef MH_SCORES_FOR

}  // namespace mh::ops
