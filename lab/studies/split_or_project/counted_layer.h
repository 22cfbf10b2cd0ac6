// A layer's formula, written with numbers that count what is done with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lab/studies/lab.h"

namespace mh::split_or_project {

struct Operations {
  int64_t multiplications = 0, additions = 0, exponentials = 0;
  int64_t others = 0;  // differences, divisions, comparisons

  /// In a product of matrices there is one addition for each multiplication.
  int64_t multiply_adds() const { return std::min(multiplications, additions); }
  int64_t flops() const { return multiplications + additions + others; }
  Operations& operator+=(const Operations& more) {
    multiplications += more.multiplications, additions += more.additions;
    exponentials += more.exponentials, others += more.others;
    return *this;
  }
};

/// A number that counts the operations on all of its kind.
class CountedNumber {
 public:
  CountedNumber(double value = 0) : value_(value) {}
  double value() const { return value_; }

  friend CountedNumber operator*(CountedNumber a, CountedNumber b) {
    ++done_.multiplications;
    return a.value_ * b.value_;
  }
  CountedNumber& operator+=(CountedNumber b) {
    ++done_.additions;
    value_ += b.value_;
    return *this;
  }
  friend CountedNumber operator-(CountedNumber a, CountedNumber b) {
    ++done_.others;
    return a.value_ - b.value_;
  }
  friend CountedNumber operator/(CountedNumber a, CountedNumber b) {
    ++done_.others;
    return a.value_ / b.value_;
  }
  friend bool operator<(CountedNumber a, CountedNumber b) {
    ++done_.others;
    return a.value_ < b.value_;
  }
  friend CountedNumber exponential(CountedNumber a) {
    ++done_.exponentials;
    return std::exp(a.value_);
  }

  /// What was counted since the last call.
  static Operations take() {
    const Operations done = done_;
    done_ = {};
    return done;
  }

 private:
  double value_;
  static inline thread_local Operations done_;
};

class CountedMatrix {
 public:
  CountedMatrix(int64_t rows, int64_t cols)
      : rows_(rows), cols_(cols), numbers_(static_cast<size_t>(rows * cols)) {}
  explicit CountedMatrix(const lab::Matrix& a) : CountedMatrix(a.rows(), a.cols()) {
    std::copy_n(a.data(), a.size(), numbers_.begin());
  }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  CountedNumber& operator()(int64_t i, int64_t j) { return numbers_[static_cast<size_t>(i * cols_ + j)]; }
  const CountedNumber& operator()(int64_t i, int64_t j) const {
    return numbers_[static_cast<size_t>(i * cols_ + j)];
  }

 private:
  int64_t rows_, cols_;
  std::vector<CountedNumber> numbers_;
};

/// sum (+)= a b
inline void add_product(const CountedMatrix& a, const CountedMatrix& b, CountedMatrix& sum) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < b.cols(); ++j) {
      for (int64_t k = 0; k < a.cols(); ++k) sum(i, j) += a(i, k) * b(k, j);
    }
  }
}
inline CountedMatrix counted_product(const CountedMatrix& a, const CountedMatrix& b) {
  CountedMatrix c(a.rows(), b.cols());
  add_product(a, b, c);
  return c;
}
inline CountedMatrix counted_transposed(const CountedMatrix& a) {
  CountedMatrix b(a.cols(), a.rows());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) b(j, i) = a(i, j);
  }
  return b;
}
/// Each row: exp(scale s - m) / its sum, m the largest scale s.
inline void counted_softmax(CountedMatrix& scores, double scale) {
  for (int64_t i = 0; i < scores.rows(); ++i) {
    CountedNumber most = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t j = 0; j < scores.cols(); ++j) {
      scores(i, j) = scores(i, j) * scale;
      if (most < scores(i, j)) most = scores(i, j);
    }
    for (int64_t j = 0; j < scores.cols(); ++j) total += scores(i, j) = exponential(scores(i, j) - most);
    for (int64_t j = 0; j < scores.cols(); ++j) scores(i, j) = scores(i, j) / total;
  }
}

/// The operations of sum_i softmax(scale Q_i K_i^T) V_i W_i^O, by the ledger's parts; and the result.
struct CountedLayer {
  Operations queries, keys, values, scores, softmax, average, output;
  lab::Matrix result;

  Operations projections() const {
    Operations all = queries;
    return (all += keys) += values, all += output;
  }
  /// In products of matrices; the softmax has none.
  int64_t multiply_adds() const {
    return projections().multiply_adds() + scores.multiply_adds() + average.multiply_adds();
  }
  Operations total() const {
    Operations all = projections();
    return (all += scores) += softmax, all += average;
  }
};
inline CountedLayer counted_layer(const lab::Matrix& x, const std::vector<lab::Head>& heads, double scale) {
  CountedLayer layer;
  const CountedMatrix rows(x);
  CountedMatrix result(x.rows(), heads.front().o.cols());
  CountedNumber::take();
  for (const lab::Head& head : heads) {
    const CountedMatrix q = counted_product(rows, CountedMatrix(head.q));
    layer.queries += CountedNumber::take();
    const CountedMatrix k = counted_product(rows, CountedMatrix(head.k));
    layer.keys += CountedNumber::take();
    const CountedMatrix v = counted_product(rows, CountedMatrix(head.v));
    layer.values += CountedNumber::take();
    CountedMatrix a = counted_product(q, counted_transposed(k));
    layer.scores += CountedNumber::take();
    counted_softmax(a, scale);
    layer.softmax += CountedNumber::take();
    const CountedMatrix average = counted_product(a, v);
    layer.average += CountedNumber::take();
    add_product(average, CountedMatrix(head.o), result);
    layer.output += CountedNumber::take();
  }
  layer.result = lab::Matrix(result.rows(), result.cols());
  for (int64_t i = 0; i < result.rows(); ++i) {
    for (int64_t j = 0; j < result.cols(); ++j) layer.result(i, j) = result(i, j).value();
  }
  return layer;
}

}  // namespace mh::split_or_project
