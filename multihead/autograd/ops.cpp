#include "multihead/autograd/ops.h"

#include <fmt/format.h>

#include <cmath>

#include "multihead/autograd/plain_loops.h"
#include "multihead/kernels/gemm.h"

namespace mh::ops {

using detail::filled;
using detail::pass_on;
using detail::sum_over;

namespace {

template <class T>
void check(const char* op, bool fits, BasicVar<T> a, BasicVar<T> b) {
  if (!fits)
    throw ShapeError(fmt::format("{}: [{},{}] x [{},{}]", op, a.rows(), a.cols(), b.rows(), b.cols()));
}

}  // namespace

// y = a b;  da = dy b^T;  db = a^T dy
template <class T>
BasicVar<T> matmul(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b) {
  check("matmul", a.cols() == b.rows(), a, b);
  const auto av = a.value(), bv = b.value();
  BasicVar<T> y = filled(tape, a.rows(), b.cols(), {a, b}, [&](int64_t i, int64_t j) {
    return sum_over<T>(av.cols, [&](int64_t k) { return av(i, k) * bv(k, j); });
  });
  tape.record(y, [&tape, a, b, y, av, bv] {
    const auto dy = y.gradient();
    pass_on(tape, a, [&](int64_t i, int64_t k) {
      return sum_over<T>(dy.cols, [&](int64_t j) { return dy(i, j) * bv(k, j); });
    });
    pass_on(tape, b, [&](int64_t k, int64_t j) {
      return sum_over<T>(dy.rows, [&](int64_t i) { return av(i, k) * dy(i, j); });
    });
  });
  return y;
}

// y = a b^T;  da = dy b;  db = dy^T a
template <class T>
BasicVar<T> matmul_transposed(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b) {
  check("matmul_transposed", a.cols() == b.cols(), a, b);
  const auto av = a.value(), bv = b.value();
  BasicVar<T> y = filled(tape, a.rows(), b.rows(), {a, b}, [&](int64_t i, int64_t j) {
    return sum_over<T>(av.cols, [&](int64_t k) { return av(i, k) * bv(j, k); });
  });
  tape.record(y, [&tape, a, b, y, av, bv] {
    const auto dy = y.gradient();
    pass_on(tape, a, [&](int64_t i, int64_t k) {
      return sum_over<T>(dy.cols, [&](int64_t j) { return dy(i, j) * bv(j, k); });
    });
    pass_on(tape, b, [&](int64_t j, int64_t k) {
      return sum_over<T>(dy.rows, [&](int64_t i) { return dy(i, j) * av(i, k); });
    });
  });
  return y;
}

// y = a + b;  da = dy;  db = dy
template <class T>
BasicVar<T> add(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b) {
  check("add", a.rows() == b.rows() && a.cols() == b.cols(), a, b);
  BasicVar<T> y = filled(tape, a.rows(), a.cols(), {a, b},
                         [&](int64_t i, int64_t j) { return a.value()(i, j) + b.value()(i, j); });
  tape.record(y, [&tape, a, b, y] {
    for (BasicVar<T> input : {a, b})
      pass_on(tape, input, [&](int64_t i, int64_t j) { return y.gradient()(i, j); });
  });
  return y;
}

// y = a * b;  da = dy * b;  db = dy * a
template <class T>
BasicVar<T> multiply(BasicTape<T>& tape, BasicVar<T> a, BasicVar<T> b) {
  check("multiply", a.rows() == b.rows() && a.cols() == b.cols(), a, b);
  const auto av = a.value(), bv = b.value();
  BasicVar<T> y =
      filled(tape, a.rows(), a.cols(), {a, b}, [&](int64_t i, int64_t j) { return av(i, j) * bv(i, j); });
  tape.record(y, [&tape, a, b, y, av, bv] {
    pass_on(tape, a, [&](int64_t i, int64_t j) { return y.gradient()(i, j) * bv(i, j); });
    pass_on(tape, b, [&](int64_t i, int64_t j) { return y.gradient()(i, j) * av(i, j); });
  });
  return y;
}

// y = factor a;  da = factor dy
template <class T>
BasicVar<T> scale(BasicTape<T>& tape, BasicVar<T> a, T factor) {
  BasicVar<T> y =
      filled(tape, a.rows(), a.cols(), {a}, [&](int64_t i, int64_t j) { return factor * a.value()(i, j); });
  tape.record(y, [&tape, a, y, factor] {
    pass_on(tape, a, [&](int64_t i, int64_t j) { return factor * y.gradient()(i, j); });
  });
  return y;
}

// dx = dy (1 - tanh^2 x); with tanh x / x held, that factor
template <class T>
BasicVar<T> tanh(BasicTape<T>& tape, BasicVar<T> a) {
  BasicVar<T> y =
      filled(tape, a.rows(), a.cols(), {a}, [&](int64_t i, int64_t j) { return std::tanh(a.value()(i, j)); });
  tape.record(y, [&tape, a, y] {
    pass_on(tape, a, [&](int64_t i, int64_t j) {
      const T x = a.value()(i, j), value = y.value()(i, j);
      const T slope = tape.stream_alone() ? (x == 0 ? T(1) : value / x) : 1 - value * value;
      return y.gradient()(i, j) * slope;
    });
  });
  return y;
}

// y_j = exp(x_j) / sum_k exp(x_k);  dx = y * (dy - sum_k dy_k y_k)
template <class T>
BasicVar<T> masked_softmax(BasicTape<T>& tape, BasicVar<T> scores, const Mask& mask, int64_t first_row) {
  const int64_t queries = scores.rows(), keys = scores.cols();
  BasicVar<T> y = tape.make(queries, keys, {scores});
  for (int64_t i = 0; i < queries; ++i) {
    const auto allowed = [&](int64_t j) { return mask.allows(first_row + i, i, j, queries, keys); };
    T largest = -std::numeric_limits<T>::infinity(), total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      if (allowed(j)) largest = std::max(largest, scores.value()(i, j));
    }
    for (int64_t j = 0; j < keys; ++j) {
      const T e = allowed(j) ? std::exp(scores.value()(i, j) - largest) : T(0);
      y.value()(i, j) = e;
      total += e;
    }
    for (int64_t j = 0; j < keys; ++j) {
      if (y.value()(i, j) != 0) y.value()(i, j) /= total;
    }
  }
  tape.record(y, [&tape, scores, y] {
    const auto p = y.value(), dy = y.gradient();
    const auto products = tape.arena().template array<T>(p.rows);
    for (int64_t i = 0; i < p.rows; ++i) {
      products[static_cast<size_t>(i)] =
          sum_over<T>(p.cols, [&](int64_t k) { return p(i, k) == 0 ? T(0) : p(i, k) * dy(i, k); });
    }
    pass_on(tape, scores, [&](int64_t i, int64_t j) {
      return p(i, j) == 0 ? T(0) : p(i, j) * (dy(i, j) - products[static_cast<size_t>(i)]);
    });
  });
  return y;
}

template <class T>
BasicVar<T> stack_rows(BasicTape<T>& tape, std::span<const BasicVar<T>> parts) {
  int64_t rows = 0;
  for (const auto& part : parts) {
    check("stack_rows", part.cols() == parts[0].cols(), parts[0], part);
    rows += part.rows();
  }
  BasicVar<T> y = tape.make(rows, parts[0].cols(), parts);
  const auto kept = tape.arena().template array<BasicVar<T>>(static_cast<int64_t>(parts.size()));
  std::copy(parts.begin(), parts.end(), kept.begin());
  int64_t begin = 0;
  for (const auto& part : kept) {
    for (int64_t i = 0; i < part.rows(); ++i)
      std::copy_n(part.value().row(i), part.cols(), y.value().row(begin + i));
    begin += part.rows();
  }
  tape.record(y, [&tape, kept, y] {
    int64_t first = 0;
    for (const auto& part : kept) {
      pass_on(tape, part, [&](int64_t i, int64_t j) { return y.gradient()(first + i, j); });
      first += part.rows();
    }
  });
  return y;
}

template <class T>
BasicVar<T> stack_columns(BasicTape<T>& tape, std::span<const BasicVar<T>> parts) {
  int64_t cols = 0;
  for (const auto& part : parts) {
    check("stack_columns", part.rows() == parts[0].rows(), parts[0], part);
    cols += part.cols();
  }
  BasicVar<T> y = tape.make(parts[0].rows(), cols, parts);
  const auto kept = tape.arena().template array<BasicVar<T>>(static_cast<int64_t>(parts.size()));
  std::copy(parts.begin(), parts.end(), kept.begin());
  int64_t left = 0;
  for (const auto& part : kept) {
    for (int64_t i = 0; i < part.rows(); ++i)
      std::copy_n(part.value().row(i), part.cols(), y.value().row(i) + left);
    left += part.cols();
  }
  tape.record(y, [&tape, kept, y] {
    int64_t first = 0;
    for (const auto& part : kept) {
      pass_on(tape, part, [&](int64_t i, int64_t j) { return y.gradient()(i, first + j); });
      first += part.cols();
    }
  });
  return y;
}

template <class T>
BasicVar<T> block(BasicTape<T>& tape, BasicVar<T> a, int64_t begin, int64_t end, int64_t left,
                  int64_t right) {
  const auto from = a.value().rows_between(begin, end).columns_between(left, right);
  BasicVar<T> y =
      filled(tape, end - begin, right - left, {a}, [&](int64_t i, int64_t j) { return from(i, j); });
  tape.record(y, [&tape, a, y, begin, end, left, right] {
    pass_on(tape, a, [&](int64_t i, int64_t j) {
      return begin <= i && i < end && left <= j && j < right ? y.gradient()(i - begin, j - left) : T(0);
    });
  });
  return y;
}

// y = sum_ij a_ij;  da = dy
template <class T>
BasicVar<T> sum(BasicTape<T>& tape, BasicVar<T> a) {
  BasicVar<T> y = tape.make(1, 1, {a});
  y.value()(0, 0) = sum_over<T>(
      a.rows(), [&](int64_t i) { return sum_over<T>(a.cols(), [&](int64_t j) { return a.value()(i, j); }); });
  tape.record(y, [&tape, a, y] { pass_on(tape, a, [&](int64_t, int64_t) { return y.gradient()(0, 0); }); });
  return y;
}

#define MH_OPS_FOR(T)                                                                         \
  template BasicVar<T> matmul(BasicTape<T>&, BasicVar<T>, BasicVar<T>);                       \
  template BasicVar<T> matmul_transposed(BasicTape<T>&, BasicVar<T>, BasicVar<T>);            \
  template BasicVar<T> add(BasicTape<T>&, BasicVar<T>, BasicVar<T>);                          \
  template BasicVar<T> multiply(BasicTape<T>&, BasicVar<T>, BasicVar<T>);                     \
  template BasicVar<T> tanh(BasicTape<T>&, BasicVar<T>);                                      \
  template BasicVar<T> scale(BasicTape<T>&, BasicVar<T>, T);                                  \
  template BasicVar<T> masked_softmax(BasicTape<T>&, BasicVar<T>, const Mask&, int64_t);      \
  template BasicVar<T> stack_rows(BasicTape<T>&, std::span<const BasicVar<T>>);               \
  template BasicVar<T> stack_columns(BasicTape<T>&, std::span<const BasicVar<T>>);            \
  template BasicVar<T> block(BasicTape<T>&, BasicVar<T>, int64_t, int64_t, int64_t, int64_t); \
  template BasicVar<T> sum(BasicTape<T>&, BasicVar<T>);
MH_OPS_FOR(float)
MH_OPS_FOR(double)
#undef MH_OPS_FOR

}  // namespace mh::ops
