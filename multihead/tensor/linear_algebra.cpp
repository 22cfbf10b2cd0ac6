#include "multihead/tensor/linear_algebra.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"

namespace mh {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Strided = Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>;

Strided mapped(ConstDoubleView a) {
  const auto index = [](int64_t size) { return static_cast<Eigen::Index>(size); };
  return {a.data, index(a.rows), index(a.cols), Eigen::OuterStride<>(index(std::max<int64_t>(1, a.stride)))};
}

template <class Matrix>
DoubleMatrix kept(const Matrix& from) {
  DoubleMatrix to(from.rows(), from.cols());
  Eigen::Map<RowMajor>(to.data(), to.rows(), to.cols()) = from;
  return to;
}

// Without it the iterations end nowhere.
void require_finite(const char* what, ConstDoubleView a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) {
      if (std::isfinite(a(i, j))) continue;
      throw Error(
          fmt::format("{} of a [{},{}] matrix: row {}, column {} is not a finite number; the weights "
                      "may be damaged",
                      what, a.rows, a.cols, i, j));
    }
  }
}

}  // namespace

DoubleMatrix in_double(ConstMatrixView a) {
  DoubleMatrix to(a.rows, a.cols);
  for (int64_t i = 0; i < a.rows; ++i) std::copy_n(a.row(i), a.cols, to.view().row(i));
  return to;
}

Tensor in_float(ConstDoubleView a) {
  Tensor to(a.rows, a.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) to(i, j) = static_cast<float>(a(i, j));
  }
  return to;
}

DoubleMatrix product(ConstDoubleView a, ConstDoubleView b) {
  if (a.cols != b.rows) {
    throw ShapeError(fmt::format("product: [{},{}] x [{},{}]", a.rows, a.cols, b.rows, b.cols));
  }
  return kept(mapped(a) * mapped(b));
}

DoubleMatrix transposed(ConstDoubleView a) {
  return kept(mapped(a).transpose());
}

DoubleMatrix Svd::of_rank(int64_t rank) const {
  MH_ASSERT(0 <= rank && rank <= static_cast<int64_t>(values.size()));
  DoubleMatrix scaled = left;
  for (int64_t i = 0; i < scaled.rows(); ++i) {
    for (int64_t n = 0; n < rank; ++n) scaled(i, n) *= values[static_cast<size_t>(n)];
  }
  return product(scaled.view().columns_between(0, rank),
                 transposed(right.view().columns_between(0, rank)).view());
}

Svd svd(ConstDoubleView a) {
  require_finite("singular values", a);
  // Divide and conquer; below 16 columns it uses Jacobi's rotations.
  const Eigen::BDCSVD<Eigen::MatrixXd> found(mapped(a), Eigen::ComputeThinU | Eigen::ComputeThinV);
  const auto& values = found.singularValues();
  return {kept(found.matrixU()), {values.data(), values.data() + values.size()}, kept(found.matrixV())};
}

std::vector<double> singular_values(ConstDoubleView a) {
  require_finite("singular values", a);
  const Eigen::BDCSVD<Eigen::MatrixXd> found(mapped(a));
  const auto& values = found.singularValues();
  return {values.data(), values.data() + values.size()};
}

int64_t numeric_rank(std::span<const double> values, double tolerance) {
  if (values.empty()) return 0;
  return std::count_if(values.begin(), values.end(),
                       [&](double value) { return value > 0 && value > tolerance * values.front(); });
}

SymmetricEigen symmetric_eigen(ConstDoubleView a) {
  MH_ASSERT(a.rows == a.cols);
  require_finite("eigenvalues", a);
  if (a.rows == 0) return {};
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> found{Eigen::MatrixXd(mapped(a))};
  const Eigen::VectorXd values = found.eigenvalues().reverse();  // Eigen's rise
  return {{values.data(), values.data() + values.size()}, kept(found.eigenvectors().rowwise().reverse())};
}

std::vector<std::complex<double>> eigenvalues(ConstDoubleView a) {
  MH_ASSERT(a.rows == a.cols);
  require_finite("eigenvalues", a);
  if (a.rows == 0) return {};
  const Eigen::EigenSolver<Eigen::MatrixXd> found(Eigen::MatrixXd(mapped(a)), /*computeEigenvectors=*/false);
  const auto& values = found.eigenvalues();
  return {values.data(), values.data() + values.size()};
}

Qr qr(ConstDoubleView a) {
  require_finite("orthogonal factors", a);
  const int64_t rank = std::min(a.rows, a.cols);
  const Eigen::HouseholderQR<Eigen::MatrixXd> found{Eigen::MatrixXd(mapped(a))};
  Eigen::MatrixXd q = found.householderQ() * Eigen::MatrixXd::Identity(a.rows, rank);
  Eigen::MatrixXd r = found.matrixQR().topRows(rank).triangularView<Eigen::Upper>();
  for (int64_t n = 0; n < rank; ++n) {  // the signs are free: this choice makes the factors unique
    if (r(n, n) >= 0) continue;
    r.row(n) *= -1;
    q.col(n) *= -1;
  }
  return {kept(q), kept(r)};
}

DoubleMatrix triangular_factor(ConstDoubleView a) {
  require_finite("orthogonal factors", a);
  const int64_t rank = std::min(a.rows, a.cols);
  const Eigen::HouseholderQR<Eigen::MatrixXd> found{Eigen::MatrixXd(mapped(a))};
  const Eigen::MatrixXd r = found.matrixQR().topRows(rank).triangularView<Eigen::Upper>();
  return kept(r);
}

DoubleMatrix least_squares(ConstDoubleView a, ConstDoubleView b, double tolerance) {
  MH_ASSERT(a.rows == b.rows);
  require_finite("least squares", b);
  const Svd found = svd(a);
  DoubleMatrix inner = product(transposed(found.left.view()).view(), b);
  const int64_t rank = numeric_rank(found.values, tolerance);
  for (int64_t n = 0; n < inner.rows(); ++n) {
    const double inverse = n < rank ? 1 / found.values[static_cast<size_t>(n)] : 0;
    for (int64_t j = 0; j < inner.cols(); ++j) inner(n, j) *= inverse;
  }
  return product(found.right.view(), inner.view());
}

}  // namespace mh
