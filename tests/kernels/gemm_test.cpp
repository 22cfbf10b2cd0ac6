#include "multihead/kernels/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

Tensor random_tensor(int64_t rows, int64_t cols, uint64_t seed) {
  Tensor t(rows, cols);
  Random random(seed);
  for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<float>(random.normal());
  return t;
}

// Against double: error at most that of adding up in float, over the sum of magnitudes.
void expect_product(ConstMatrixView a, ConstMatrixView b, ConstMatrixView c, ConstMatrixView before) {
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.cols; ++j) {
      double sum = before.empty() ? 0 : before(i, j), magnitude = std::abs(sum);
      for (int64_t k = 0; k < a.cols; ++k) {
        const double term = static_cast<double>(a(i, k)) * b(k, j);
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(c(i, j), sum, 1e-6 + magnitude * 1e-6) << i << "," << j;
    }
  }
}

struct Shape {
  int64_t m, n, k;
};
class Gemm : public testing::TestWithParam<Shape> {};

TEST_P(Gemm, MultipliesByPackedPlainAndTransposed) {
  const auto [m, n, k] = GetParam();
  const Tensor a = random_tensor(m, k, 1), b = random_tensor(k, n, 2);
  Tensor bt(n, k);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < n; ++j) bt(j, i) = b(i, j);
  }
  PackedMatrix plain, transposed;
  plain.pack(b.view());
  transposed.pack_transposed(bt.view());
  Tensor c(m, n);
  c.fill(NAN);  // must be overwritten
  multiply(a.view(), plain, c.view());
  expect_product(a.view(), b.view(), c.view(), {});
  Tensor from_transposed(m, n);
  multiply(a.view(), transposed, from_transposed.view());
  for (int64_t i = 0; i < c.size(); ++i) ASSERT_EQ(c.data()[i], from_transposed.data()[i]);
}

TEST_P(Gemm, AddsAndMultipliesTransposed) {
  const auto [m, n, k] = GetParam();
  const Tensor at = random_tensor(k, m, 3), b = random_tensor(k, n, 4), before = random_tensor(m, n, 5);
  Tensor a(m, k);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < k; ++j) a(i, j) = at(j, i);
  }
  Tensor c = random_tensor(m, n, 5);
  multiply_transposed(at.view(), b.view(), c.view(), Write::kAdd);
  expect_product(a.view(), b.view(), c.view(), before.view());
}

INSTANTIATE_TEST_SUITE_P(Shapes, Gemm,
                         testing::Values(Shape{1, 1, 1}, Shape{5, 7, 3}, Shape{6, 64, 16}, Shape{7, 65, 17},
                                         Shape{47, 63, 31}, Shape{49, 129, 257}, Shape{97, 16, 513},
                                         Shape{2, 131, 0}, Shape{11, 128, 800}));

TEST(GemmParts, PacksSeveralMatricesSideBySide) {
  const Tensor a = random_tensor(13, 19, 1), b0 = random_tensor(19, 37, 2), b1 = random_tensor(19, 53, 3);
  PackedMatrix packed;
  packed.pack(std::array{StoredMatrix::of(b0.view()), StoredMatrix::of(b1.view())});
  Tensor c(13, 90);
  multiply(a.view(), packed, c.view());
  expect_product(a.view(), b0.view(), c.view().columns_between(0, 37), {});
  expect_product(a.view(), b1.view(), c.view().columns_between(37, 90), {});

  // dX = [dY0 | dY1] [B0 | B1]^T
  const Tensor dy = random_tensor(13, 90, 4);
  packed.pack_transposed(std::array{StoredMatrix::of(b0.view()), StoredMatrix::of(b1.view())});
  Tensor dx(13, 19);
  multiply(dy.view(), packed, dx.view());
  Tensor joined_t(90, 19);
  for (int64_t k = 0; k < 19; ++k) {
    for (int64_t j = 0; j < 37; ++j) joined_t(j, k) = b0(k, j);
    for (int64_t j = 0; j < 53; ++j) joined_t(37 + j, k) = b1(k, j);
  }
  expect_product(dy.view(), joined_t.view(), dx.view(), {});
}

TEST(GemmThreads, GivesTheSameBitsForAnyNumber) {
  const Tensor a = random_tensor(301, 131, 1), b = random_tensor(131, 149, 2),
               dy = random_tensor(301, 149, 3);
  PackedMatrix packed;
  packed.pack(b.view());
  std::vector<float> first;
  for (int threads : {1, 2, 3, 7}) {
    set_thread_count(threads);
    Tensor c(301, 149), dw(131, 149);
    multiply(a.view(), packed, c.view());
    multiply_transposed(a.view(), dy.view(), dw.view());
    std::vector<float> bits(c.data(), c.data() + c.size());
    bits.insert(bits.end(), dw.data(), dw.data() + dw.size());
    if (first.empty()) first = bits;
    EXPECT_EQ(first, bits) << threads;
  }
  set_thread_count(2);
}

TEST(GemmThreads, ShareFewRowsByPanelsAndMoreEvenly) {
  const int64_t k = 521, n = 1409;  // several tasks even for one row
  const Tensor b = random_tensor(k, n, 2);
  PackedMatrix packed;
  packed.pack(b.view());
  for (const int64_t rows : {1, 7, 48, 49, 192, 193, 601, 768, 1537}) {
    const Tensor a = random_tensor(rows, k, 1);
    Tensor expected = random_tensor(rows, n, 3);
    detail::multiply_rows(a.view(), packed, expected.view(), Write::kAdd);
    for (const int threads : {1, 2, 5}) {
      set_thread_count(threads);
      Tensor c = random_tensor(rows, n, 3);
      std::atomic<int64_t> after = 0;
      multiply(a.view(), packed, c.view(), Write::kAdd,
               [&](int64_t begin, int64_t end) { after += end - begin; });
      EXPECT_EQ(after, rows);
      for (int64_t i = 0; i < c.size(); ++i) ASSERT_EQ(c.data()[i], expected.data()[i]) << rows << " rows";

      Tensor used = random_tensor(rows, n, 3);  // the same once more, from the threads' memory
      multiply_and_use(a.view(), packed, [&](ConstMatrixView block, int64_t begin, int64_t end) {
        ASSERT_EQ(block.rows, end - begin);
        for (int64_t r = begin; r < end; ++r) {
          for (int64_t j = 0; j < n; ++j) used(r, j) += block.row(r - begin)[j];
        }
      });
      for (int64_t i = 0; i < c.size(); ++i)
        ASSERT_NEAR(used.data()[i], expected.data()[i], 1e-4f) << rows << " rows";
    }
  }
  set_thread_count(2);
}

TEST(GemmErrors, NamesTheShapes) {
  const Tensor a(2, 3), b(4, 5);
  PackedMatrix packed;
  packed.pack(b.view());
  Tensor c(2, 5);
  try {
    multiply(a.view(), packed, c.view());
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "multiply: [2,3] x [4,5] into [2,5]");
  }
}

}  // namespace
}  // namespace mh
