// A layer's formula, written with numbers that count what is done with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "lab/studies/lab.h"

namespace mh::split_or_project {

struct Operations {
  int64_t multiplications = 0, additions = 0, exponentials = 0;
  int64_t others = 0;  // differences, divisions, comparisons

  /// In a product of matrices there is one addition for each multiplication.
  int64_t multiply_adds() const { return std::min(multiplications, additions); }
  int64_t flops() const { return multiplications + additions + others; }
  Operations operator+(const Operations& more) const {
    return {multiplications + more.multiplications, additions + more.additions,
            exponentials + more.exponentials, others + more.others};
  }
};

/// A number that counts the operations on all of its kind.
class CountedNumber {
 public:
  CountedNumber(double value = 0) : value_(value) {}
  double value() const { return value_; }

  friend CountedNumber operator*(CountedNumber a, CountedNumber b) {
    return counted(done_.multiplications, a.value_ * b.value_);
  }
  friend CountedNumber operator+(CountedNumber a, CountedNumber b) {
    return counted(done_.additions, a.value_ + b.value_);
  }
  friend CountedNumber operator-(CountedNumber a, CountedNumber b) {
    return counted(done_.others, a.value_ - b.value_);
  }
  friend CountedNumber operator/(CountedNumber a, CountedNumber b) {
    return counted(done_.others, a.value_ / b.value_);
  }
  friend bool operator<(CountedNumber a, CountedNumber b) {
    ++done_.others;
    return a.value_ < b.value_;
  }
  friend CountedNumber exponential(CountedNumber a) {
    return counted(done_.exponentials, std::exp(a.value_));
  }

  /// What was counted since the last call.
  static Operations take() { return std::exchange(done_, {}); }

 private:
  static CountedNumber counted(int64_t& operations, double value) {
    ++operations;
    return value;
  }

  double value_;
  static inline thread_local Operations done_;
};

/// sum += a b
inline void add_counted_product(const lab::Matrix& a, const lab::Matrix& b, lab::Matrix& sum) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < b.cols(); ++j) {
      CountedNumber total = sum(i, j);
      for (int64_t k = 0; k < a.cols(); ++k) total = total + CountedNumber(a(i, k)) * b(k, j);
      sum(i, j) = total.value();
    }
  }
}
/// Each row: exp(scale s - m) / its sum, m the largest scale s.
inline void counted_softmax(lab::Matrix& scores, double scale) {
  for (int64_t i = 0; i < scores.rows(); ++i) {
    std::vector<CountedNumber> row(&scores(i, 0), &scores(i, 0) + scores.cols());
    CountedNumber most = -std::numeric_limits<double>::infinity(), total = 0;
    for (CountedNumber& score : row) {
      score = score * scale;
      if (most < score) most = score;
    }
    for (CountedNumber& score : row) total = total + (score = exponential(score - most));
    for (int64_t j = 0; j < scores.cols(); ++j) scores(i, j) = (row[static_cast<size_t>(j)] / total).value();
  }
}

/// The operations of sum_i softmax(scale Q_i K_i^T) V_i W_i^O, by the ledger's parts; and the result.
struct CountedLayer {
  Operations queries, keys, values, scores, softmax, average, output;
  lab::Matrix result;

  Operations projections() const { return queries + keys + values + output; }
  /// In products of matrices; the softmax has none.
  int64_t multiply_adds() const { return (projections() + scores + average).multiply_adds(); }
  Operations total() const { return projections() + scores + softmax + average; }
};
inline CountedLayer counted_layer(const lab::Matrix& x, const std::vector<lab::Head>& heads, double scale) {
  CountedLayer layer;
  layer.result = lab::Matrix(x.rows(), heads.front().o.cols());
  const auto add = [](Operations& part) { part = part + CountedNumber::take(); };
  const auto product = [&](const lab::Matrix& a, const lab::Matrix& b, Operations& part) {
    lab::Matrix c(a.rows(), b.cols());
    add_counted_product(a, b, c);
    add(part);
    return c;
  };
  CountedNumber::take();
  for (const lab::Head& head : heads) {
    const lab::Matrix q = product(x, head.q, layer.queries), k = product(x, head.k, layer.keys),
                      v = product(x, head.v, layer.values);
    lab::Matrix weights = product(q, lab::transposed(k), layer.scores);
    counted_softmax(weights, scale);
    add(layer.softmax);
    add_counted_product(product(weights, v, layer.average), head.o, layer.result);
    add(layer.output);
  }
  return layer;
}

}  // namespace mh::split_or_project
