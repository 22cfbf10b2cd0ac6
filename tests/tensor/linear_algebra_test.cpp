// The product of the factors is the matrix, the factors have the promised form, and known matrices give
// known values.
#include "multihead/tensor/linear_algebra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>
#include <vector>

#include "multihead/base/random.h"

namespace mh {
namespace {

DoubleMatrix random_matrix(int64_t rows, int64_t cols, uint64_t seed) {
  Random random(seed);
  DoubleMatrix a(rows, cols);
  for (int64_t i = 0; i < a.size(); ++i) a.data()[i] = random.normal();
  return a;
}

void expect_near(const DoubleMatrix& found, const DoubleMatrix& expected, double tolerance = 1e-12) {
  ASSERT_EQ(found.rows(), expected.rows());
  ASSERT_EQ(found.cols(), expected.cols());
  for (int64_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found.data()[i], expected.data()[i], tolerance) << "number " << i;
  }
}

DoubleMatrix identity(int64_t n) {
  DoubleMatrix a(n, n);
  for (int64_t i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

DoubleMatrix times_itself(const DoubleMatrix& a) {  // a^T a
  return product(transposed(a.view()).view(), a.view());
}

class Factors : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  DoubleMatrix a = random_matrix(GetParam().first, GetParam().second, 7);
  int64_t rank = std::min(a.rows(), a.cols());
};

TEST_P(Factors, SingularValuesAndVectorsMakeTheMatrix) {
  const Svd found = svd(a.view());
  ASSERT_EQ(static_cast<int64_t>(found.values.size()), rank);
  EXPECT_TRUE(std::is_sorted(found.values.rbegin(), found.values.rend()));
  expect_near(times_itself(found.left), identity(rank));
  expect_near(times_itself(found.right), identity(rank));
  expect_near(found.of_rank(rank), a);
  double squares = 0, of_a = 0;
  for (const double value : found.values) squares += value * value;
  for (int64_t i = 0; i < a.size(); ++i) of_a += a.data()[i] * a.data()[i];
  EXPECT_NEAR(squares, of_a, 1e-10);
}

TEST_P(Factors, CutToARankTheErrorIsTheValuesLeftOut) {
  const Svd found = svd(a.view());
  for (int64_t cut = 0; cut <= rank; ++cut) {
    const DoubleMatrix near = found.of_rank(cut);
    double error = 0, left_out = 0;
    for (int64_t i = 0; i < a.size(); ++i) error += std::pow(a.data()[i] - near.data()[i], 2);
    for (int64_t n = cut; n < rank; ++n) left_out += std::pow(found.values[static_cast<size_t>(n)], 2);
    EXPECT_NEAR(error, left_out, 1e-10) << cut;
    EXPECT_EQ(numeric_rank(svd(near.view()).values), cut);
  }
}

TEST_P(Factors, OrthogonalTimesTriangular) {
  const Qr found = qr(a.view());
  expect_near(times_itself(found.q), identity(rank));
  expect_near(product(found.q.view(), found.r.view()), a);
  for (int64_t i = 0; i < rank; ++i) {
    EXPECT_GE(found.r(i, i), 0);
    for (int64_t j = 0; j < i; ++j) EXPECT_EQ(found.r(i, j), 0);
  }
}

TEST_P(Factors, LeastSquaresLeaveAResidualAtRightAngles) {
  const DoubleMatrix b = random_matrix(a.rows(), 2, 8);
  const DoubleMatrix x = least_squares(a.view(), b.view());
  DoubleMatrix residual = product(a.view(), x.view());
  for (int64_t i = 0; i < b.size(); ++i) residual.data()[i] -= b.data()[i];
  expect_near(product(transposed(a.view()).view(), residual.view()), DoubleMatrix(a.cols(), 2), 1e-10);
  // The shortest: nothing of x lies where a sees nothing.
  expect_near(least_squares(a.view(), product(a.view(), x.view()).view()), x, 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Factors,
                         testing::Values(std::pair(5, 3), std::pair(3, 5), std::pair(4, 4), std::pair(1, 7),
                                         std::pair(29, 23), std::pair(17, 31)));

TEST(LinearAlgebra, ReadsViewsOfLargerMatrices) {
  const DoubleMatrix a = random_matrix(5, 7, 3);
  const ConstDoubleView part = a.view().columns_between(2, 5);
  DoubleMatrix copy(5, 3);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 3; ++j) copy(i, j) = a(i, j + 2);
  }
  expect_near(svd(part).of_rank(3), copy);
  expect_near(transposed(transposed(part).view()), copy, 0);
  EXPECT_EQ(qr(part).r(0, 1), qr(copy.view()).r(0, 1));
}

TEST(LinearAlgebra, EigenvaluesOfAMatrixMadeOfThem) {
  const DoubleMatrix q = qr(random_matrix(5, 5, 11).view()).q;
  const std::vector<double> values = {4, 2.5, 0, -1, -3};
  DoubleMatrix scaled = q;
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 5; ++j) scaled(i, j) *= values[static_cast<size_t>(j)];
  }
  const DoubleMatrix a = product(scaled.view(), transposed(q.view()).view());
  const SymmetricEigen found = symmetric_eigen(a.view());
  EXPECT_THAT(found.values, testing::Pointwise(testing::DoubleNear(1e-12), values));
  for (int64_t j = 0; j < 5; ++j) {  // up to the sign
    double cosine = 0;
    for (int64_t i = 0; i < 5; ++i) cosine += found.vectors(i, j) * q(i, j);
    EXPECT_NEAR(std::abs(cosine), 1, 1e-12);
  }
}

TEST(LinearAlgebra, SingularValuesAlone) {
  const DoubleMatrix a = random_matrix(7, 5, 11);
  const std::vector<double> found = singular_values(a.view()), expected = svd(a.view()).values;
  ASSERT_EQ(found.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(found[i], expected[i], 1e-12);
}

TEST(LinearAlgebra, EigenvaluesOfAnyMatrix) {
  DoubleMatrix a(3, 3);  // a turn by 90 degrees, times 2, and -5
  a(0, 1) = -2;
  a(1, 0) = 2;
  a(2, 2) = -5;
  std::vector<std::complex<double>> found = eigenvalues(a.view());
  std::sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.imag() < y.imag(); });
  ASSERT_EQ(found.size(), 3u);
  for (const auto& [at, value] : {std::pair<size_t, std::complex<double>>{0, {0, -2}}, {1, -5}, {2, {0, 2}}})
    EXPECT_NEAR(std::abs(found[at] - value), 0, 1e-12);
  EXPECT_TRUE(eigenvalues(DoubleMatrix(0, 0).view()).empty());
}

TEST(LinearAlgebra, TriangularFactorKeepsLengthsAndAngles) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{7, 3}, {3, 5}}) {
    const DoubleMatrix a = random_matrix(rows, cols, 13), r = triangular_factor(a.view());
    EXPECT_EQ(r.rows(), std::min(rows, cols));
    const DoubleMatrix of_a = product(transposed(a.view()).view(), a.view()),
                       of_r = product(transposed(r.view()).view(), r.view());
    for (int64_t i = 0; i < of_a.size(); ++i) EXPECT_NEAR(of_a.data()[i], of_r.data()[i], 1e-12);
    EXPECT_EQ(r(1, 0), 0);
  }
}

TEST(LinearAlgebra, RankOfZerosIsZero) {
  EXPECT_EQ(numeric_rank(svd(DoubleMatrix(3, 4).view()).values), 0);
  EXPECT_EQ(numeric_rank(std::vector<double>{}), 0);
  EXPECT_EQ(numeric_rank(std::vector<double>{1, 1e-3, 1e-9}), 2);
}

TEST(LinearAlgebra, FloatsAndBack) {
  Tensor a(2, 3);
  for (int64_t i = 0; i < a.size(); ++i) a.data()[i] = 0.1f * static_cast<float>(i);
  const Tensor back = in_float(in_double(a.view().columns_between(1, 3)).view());
  EXPECT_EQ(back(1, 0), a(1, 1));
  EXPECT_EQ(back.cols(), 2);
}

TEST(LinearAlgebra, RefusesWhatIsNotFinite) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    DoubleMatrix a = random_matrix(3, 3, 1);
    a(2, 1) = bad;
    const std::string where = "[3,3] matrix: row 2, column 1 is not a finite number";
    const auto refuses = [&](auto&& call) {
      EXPECT_THAT(call, testing::ThrowsMessage<Error>(testing::HasSubstr(where)));
    };
    refuses([&] { svd(a.view()); });
    refuses([&] { symmetric_eigen(a.view()); });
    refuses([&] { qr(a.view()); });
    refuses([&] { triangular_factor(a.view()); });
    refuses([&] { singular_values(a.view()); });
    refuses([&] { eigenvalues(a.view()); });
    refuses([&] { least_squares(identity(3).view(), a.view()); });
  }
  EXPECT_THAT([] { product(DoubleMatrix(2, 3).view(), DoubleMatrix(2, 3).view()); },
              testing::ThrowsMessage<ShapeError>("product: [2,3] x [2,3]"));
}

}  // namespace
}  // namespace mh
