#include "multihead/nn/geometries/shared_factors.h"

#include <algorithm>
#include <cmath>

namespace mh {
namespace {

class SharedFactorFit {
 public:
  SharedFactorFit(std::vector<DoubleMatrix> lefts, std::vector<DoubleMatrix> rights, int64_t size)
      : lefts_(std::move(lefts)), rights_(std::move(rights)), size_(size) {
    start();
  }

  void improve(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      left_ = solved(times(lefts_, rights_, right_), gram(right_, mixing_));
      right_ = solved(times(rights_, lefts_, left_), gram(left_, mixing_));
      mixing_ = solved(products(), gram(left_, right_));
    }
  }

  SharedFactors factors() && { return {std::move(left_), std::move(right_), std::move(mixing_)}; }

 private:
  /// The largest singular vectors of all heads, each mixed into its own head only.
  void start() {
    struct Candidate {
      double value;
      size_t head;
      int64_t vector;
    };
    std::vector<Candidate> all;
    std::vector<Svd> found;
    for (size_t h = 0; h < lefts_.size(); ++h) {
      // svd(left right^T) from the small factors: left = q_1 r_1, right = q_2 r_2, svd(r_1 r_2^T).
      const Qr a = qr(lefts_[h].view()), b = qr(rights_[h].view());
      Svd inner = svd(product(a.r.view(), transposed(b.r.view()).view()).view());
      inner.left = product(a.q.view(), inner.left.view());
      inner.right = product(b.q.view(), inner.right.view());
      for (size_t n = 0; n < inner.values.size(); ++n)
        all.push_back({inner.values[n], h, static_cast<int64_t>(n)});
      found.push_back(std::move(inner));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.value > b.value; });
    left_ = DoubleMatrix(lefts_[0].rows(), size_);
    right_ = DoubleMatrix(rights_[0].rows(), size_);
    mixing_ = DoubleMatrix(static_cast<int64_t>(lefts_.size()), size_);
    for (int64_t r = 0; r < std::min(size_, static_cast<int64_t>(all.size())); ++r) {
      const Candidate& c = all[static_cast<size_t>(r)];
      const double root = std::sqrt(c.value);
      for (int64_t i = 0; i < left_.rows(); ++i) left_(i, r) = root * found[c.head].left(i, c.vector);
      for (int64_t i = 0; i < right_.rows(); ++i) right_(i, r) = root * found[c.head].right(i, c.vector);
      mixing_(static_cast<int64_t>(c.head), r) = 1;
    }
  }
  /// sum_i outer_i (inner_i^T factor) with the columns times mixing_(i, :).
  DoubleMatrix times(const std::vector<DoubleMatrix>& outer, const std::vector<DoubleMatrix>& inner,
                     const DoubleMatrix& factor) const {
    DoubleMatrix sum(outer[0].rows(), size_);
    for (size_t h = 0; h < outer.size(); ++h) {
      const DoubleMatrix part =
          product(outer[h].view(), product(transposed(inner[h].view()).view(), factor.view()).view());
      for (int64_t i = 0; i < sum.rows(); ++i) {
        for (int64_t r = 0; r < size_; ++r) sum(i, r) += mixing_(static_cast<int64_t>(h), r) * part(i, r);
      }
    }
    return sum;
  }
  /// left_r^T W_i right_r for every head and r.
  DoubleMatrix products() const {
    DoubleMatrix all(static_cast<int64_t>(lefts_.size()), size_);
    for (size_t h = 0; h < lefts_.size(); ++h) {
      const DoubleMatrix a = product(transposed(lefts_[h].view()).view(), left_.view());
      const DoubleMatrix b = product(transposed(rights_[h].view()).view(), right_.view());
      for (int64_t n = 0; n < a.rows(); ++n) {
        for (int64_t r = 0; r < size_; ++r) all(static_cast<int64_t>(h), r) += a(n, r) * b(n, r);
      }
    }
    return all;
  }
  /// (a^T a) * (b^T b), number by number.
  static DoubleMatrix gram(const DoubleMatrix& a, const DoubleMatrix& b) {
    DoubleMatrix of_a = product(transposed(a.view()).view(), a.view());
    const DoubleMatrix of_b = product(transposed(b.view()).view(), b.view());
    for (int64_t i = 0; i < of_a.size(); ++i) of_a.data()[i] *= of_b.data()[i];
    return of_a;
  }
  /// target gram^-1; gram is symmetric, and may be singular.
  static DoubleMatrix solved(const DoubleMatrix& target, const DoubleMatrix& gram_matrix) {
    const SymmetricEigen found = symmetric_eigen(gram_matrix.view());
    DoubleMatrix turned = product(target.view(), found.vectors.view());
    for (int64_t n = 0; n < turned.cols(); ++n) {
      const double value = found.values[static_cast<size_t>(n)];
      const double inverse = value > 1e-12 * found.values[0] ? 1 / value : 0;
      for (int64_t i = 0; i < turned.rows(); ++i) turned(i, n) *= inverse;
    }
    return product(turned.view(), transposed(found.vectors.view()).view());
  }

  std::vector<DoubleMatrix> lefts_, rights_;
  int64_t size_;
  DoubleMatrix left_, right_, mixing_;
};

}  // namespace

SharedFactors shared_factors(std::vector<DoubleMatrix> lefts, std::vector<DoubleMatrix> rights, int64_t size,
                             int rounds) {
  SharedFactorFit fit(std::move(lefts), std::move(rights), size);
  fit.improve(rounds);
  return std::move(fit).factors();
}

}  // namespace mh
