// What plain ops are made of (ops.cpp, scores.cpp): loops over all numbers of a matrix, in float or double.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "multihead/autograd/tape.h"

namespace mh::ops::detail {

/// Adds numbers to an input's gradient, if it wants one: body(i, j) is the share of element (i, j).
template <class T, class Share>
void pass_on(BasicTape<T>& tape, BasicVar<T> input, Share share) {
  if (!input.wants_gradient()) return;
  const auto target = tape.gradient_of(input);
  for (int64_t i = 0; i < input.rows(); ++i) {
    for (int64_t j = 0; j < input.cols(); ++j) {
      T& to = target.gradient(i, j);
      to = target.write == Write::kAdd ? to + share(i, j) : share(i, j);
    }
  }
}

template <class T, class Element>
BasicVar<T> filled(BasicTape<T>& tape, int64_t rows, int64_t cols, std::initializer_list<BasicVar<T>> inputs,
                   Element element) {
  BasicVar<T> y = tape.make(rows, cols, inputs);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) y.value()(i, j) = element(i, j);
  }
  return y;
}

/// sum over k of term(k)
template <class T, class Term>
T sum_over(int64_t count, Term term) {
  T total = 0;
  for (int64_t k = 0; k < count; ++k) total += term(k);
  return total;
}

}  // namespace mh::ops::detail
