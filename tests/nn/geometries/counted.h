// A number type that counts the operations on it; the counts of the ledger are checked against it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace mh::test {

/// A number that notes what is done with it.
struct Counted {
  static inline int64_t products = 0, others = 0, exponentials = 0;  // products: multiplications in a sum
  float value = 0;

  static void clear() { products = others = exponentials = 0; }
};

inline Counted operator+(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value + b.value};
}
inline Counted operator-(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value - b.value};
}
inline Counted operator*(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value * b.value};
}
inline Counted operator/(Counted a, Counted b) {
  return ++Counted::others, Counted{a.value / b.value};
}
inline Counted larger(Counted a, Counted b) {
  return ++Counted::others, a.value < b.value ? b : a;
}
inline Counted exponential(Counted a) {
  return ++Counted::exponentials, Counted{std::exp(a.value)};
}
inline Counted root(Counted a) {
  return ++Counted::others, Counted{std::sqrt(a.value)};
}
inline void multiply_add(Counted a, Counted b, Counted& sum) {
  ++Counted::products;
  sum.value += a.value * b.value;
}

using Rows = std::vector<std::vector<Counted>>;

inline Rows zeros(int64_t rows, int64_t cols) {
  return Rows(static_cast<size_t>(rows), std::vector<Counted>(static_cast<size_t>(cols), Counted{0.1f}));
}
inline Rows product(const Rows& a, const Rows& b) {
  Rows c = zeros(static_cast<int64_t>(a.size()), static_cast<int64_t>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t n = 0; n < b.size(); ++n) {
      for (size_t j = 0; j < b[0].size(); ++j) multiply_add(a[i][n], b[n][j], c[i][j]);
    }
  }
  return c;
}
inline void add_bias_to(Rows& a) {
  for (auto& row : a) {
    for (Counted& x : row) x = x + Counted{0.5f};
  }
}

}  // namespace mh::test
