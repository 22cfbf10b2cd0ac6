// Products of rotated bytes have the bits of their formula (kernels/channel_rows.h, kernels/channel_panels.h) on every target.
#include "multihead/kernels/channel_panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/normal_matrix.h"
#include "tests/kernels/on_target.h"

namespace mh {
namespace {

/// A row of X or a column of W as the formula has it, in float32, the steps of a Hadamard matrix from distance 1 on.
struct RotatedBytes {
  std::vector<int64_t> a;
  float scale = 0;

  explicit RotatedBytes(std::vector<float> z) : a(z.size()) {
    for (size_t begin = 0, left = z.size(); left > 0;) {
      size_t n = 128;
      while (n > left) n /= 2;
      for (size_t distance = 1; distance < n; distance *= 2) {
        for (size_t k = 0; k < n; ++k) {
          if ((k & distance) != 0) continue;
          float &low = z[begin + k], &high = z[begin + k + distance];
          const float p = low, q = high;
          low = p + q;
          high = p - q;
        }
      }
      const auto factor = static_cast<float>(std::sqrt(128.0 / static_cast<double>(n)));
      for (size_t k = 0; k < n; ++k) z[begin + k] *= factor;
      begin += n;
      left -= n;
    }
    float largest = 0;
    bool finite = true;
    for (const float number : z) {
      finite = finite && std::isfinite(number);
      largest = std::max(largest, std::fabs(number));
    }
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
    if (!finite || largest < 0x1p-100f) return;
    scale = largest / 127.0f;
    const float inverse = 127.0f / largest;
    for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<int64_t>(std::nearbyint(z[k] * inverse));
  }
};

float expected_of(const RotatedBytes& row, const RotatedBytes& column) {
  int64_t n = 0;
  for (size_t k = 0; k < row.a.size(); ++k) n += row.a[k] * column.a[k];
  const float scale = row.scale * (column.scale / 128.0f);
  return static_cast<float>(n) * scale + 0.0f;
}

int64_t columns_of_panels() {
  PackedMatrix packed;
  packed.pack(Tensor(1, 1).view());
  return packed.panel();
}

/// Y (+)= X W with all rows and panels as tasks.
void multiply_channels_of(ProductKernel kernel, const Tensor& x, const StoredMatrix& w, MatrixView y,
                          bool add = false) {
  Guarded<std::byte> row_bytes(channel_rows_bytes(x.rows(), x.cols()));
  const ChannelRows rows = place_channel_rows(x.rows(), x.cols(), row_bytes.data());
  parallel_for((x.rows() + 2) / 3, [&](int64_t task) {
    fill_channel_rows(x.view(), rows, task * 3, std::min(x.rows(), task * 3 + 3));
  });
  const int64_t columns = columns_of_panels();
  parallel_for((w.cols + columns - 1) / columns, [&](int64_t task) {
    Guarded<std::byte> panel(channel_panel_bytes(w.rows, columns));
    const int64_t first = task * columns, width = std::min(columns, w.cols - first);
    pack_channel_panel(w, first, width, columns, panel.data());
    constexpr int64_t kRows = 19;
    for (int64_t begin = 0; begin < x.rows(); begin += kRows) {
      const int64_t end = std::min(x.rows(), begin + kRows);
      multiply_channel_panel(rows.rows_between(begin, end), panel.data(), kernel,
                             y.rows_between(begin, end).columns_between(first, first + width), add);
    }
  });
}

void expect_the_formula_of_channels(ProductKernel kernel, const Tensor& x, const StoredMatrix& w) {
  Tensor wide(x.rows(), w.cols + 3);
  wide.fill(-7);
  const MatrixView y = wide.view().columns_between(1, 1 + w.cols);
  multiply_channels_of(kernel, x, w, y);
  std::vector<RotatedBytes> columns;
  for (int64_t j = 0; j < w.cols; ++j) {
    std::vector<float> column;
    for (int64_t k = 0; k < w.rows; ++k) column.push_back(w(k, j));
    columns.emplace_back(column);
  }
  for (int64_t i = 0; i < x.rows(); ++i) {
    const float* const numbers = x.view().row(i);
    const RotatedBytes row(std::vector<float>(numbers, numbers + x.cols()));
    for (int64_t j = 0; j < w.cols; ++j) {
      const float right = expected_of(row, columns[static_cast<size_t>(j)]);
      if (std::isnan(right) && std::isnan(y(i, j))) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(y(i, j)), std::bit_cast<uint32_t>(right))
          << "row " << i << ", column " << j << ": " << y(i, j) << " and " << right;
    }
    ASSERT_EQ(wide(i, 0), -7);
    ASSERT_EQ(wide(i, w.cols + 1), -7);
  }
}

class ChannelPanels : public testing::TestWithParam<KernelOnTarget> {
 protected:
  const ProductKernel kernel_ = GetParam().second;

 private:
  OnTarget on_{GetParam().first};
};

TEST_P(ChannelPanels, HaveTheBitsOfTheFormula) {
  for (const int64_t k : {1, 2, 3, 4, 7, 31, 61, 127, 128, 129, 251, 415, 640}) {
    SCOPED_TRACE(k);
    const Tensor w = normal_matrix(k, 131, 3 + static_cast<uint64_t>(k));
    for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 11})
      expect_the_formula_of_channels(kernel_, normal_matrix(rows, k, 5), StoredMatrix::of(w.view()));
  }
}

TEST_P(ChannelPanels, OfWeightsAsFilesHaveThem) {
  const Tensor w = normal_matrix(293, 211, 3);
  const StoredMatrix stored = StoredMatrix::of(w.view());
  const Tensor x = normal_matrix(5, 211, 1), part = normal_matrix(5, 101, 2);
  expect_the_formula_of_channels(kernel_, x, stored.transposed());
  expect_the_formula_of_channels(kernel_, part, stored.rows_between(7, 108).columns_between(13, 90));
  std::vector<uint16_t> halves;
  for (int64_t i = 0; i < w.size(); ++i) halves.push_back(to_bfloat16(w.data()[i]));
  StoredMatrix bfloat = stored;
  bfloat.data = reinterpret_cast<const std::byte*>(halves.data());
  bfloat.type = NumberType::kBFloat16;
  expect_the_formula_of_channels(kernel_, x, bfloat.transposed());
  expect_the_formula_of_channels(kernel_, part, bfloat.rows_between(7, 108).columns_between(13, 90));
}

// Numbers that are halves of steps after the rotation: R of one is 1 or -1 times it.
TEST_P(ChannelPanels, RoundHalvesToTheEvenInteger) {
  Tensor x(1, 384), w(384, 5);
  for (int64_t n = 0; n < 3; ++n) x(0, 128 * n) = std::array{127.0f, 2.5f, -3.5f}[static_cast<size_t>(n)];
  for (int64_t j = 0; j < 5; ++j) w(0, j) = 127, w(128, j) = 0.5f + static_cast<float>(j);
  Guarded<std::byte> bytes(channel_rows_bytes(1, 384));
  const ChannelRows rows = place_channel_rows(1, 384, bytes.data());
  fill_channel_rows(x.view(), rows, 0, 1);
  for (int64_t k = 0; k < 384; ++k) ASSERT_EQ(rows.low[k], k < 128 ? 127 : k < 256 ? 2 : -4) << k;
  EXPECT_EQ(rows.scale[0], 1);
  EXPECT_EQ(rows.sum[0], 128 * 125);
  expect_the_formula_of_channels(kernel_, x, StoredMatrix::of(w.view()));
}

// Products with the scale's inverse that round to a half, and are none: a multiplication that adds before it rounds has other integers.
TEST_P(ChannelPanels, RoundTheProductFirst) {
  std::vector<float> found;
  for (int a = (1 << 20) + 1; found.size() < 2 * 61; a += 2) {
    const float inverse = 127.0f / (8 * static_cast<float>(a));
    for (int n = 0; n < 127; ++n) {
      const double half = n + 0.5;
      const auto b = static_cast<float>(2 * std::nearbyint((half * a / 127 - 1) / 2) + 1);  // odd as a is
      const double exact = 8.0 * static_cast<double>(b) * static_cast<double>(inverse);
      if (8 * b * inverse != static_cast<float>(half) || std::nearbyint(exact) == std::nearbyint(half))
        continue;
      found.push_back((static_cast<float>(a) + b) / 2);
      found.push_back((static_cast<float>(a) - b) / 2);
    }
  }
  const auto rows = static_cast<int64_t>(found.size() / 2);
  Guarded<std::byte> bytes(channel_rows_bytes(rows, 2));
  const ChannelRows to = place_channel_rows(rows, 2, bytes.data());
  fill_channel_rows(ConstMatrixView(found.data(), rows, 2), to, 0, rows);
  for (int64_t i = 0; i < rows; ++i) {
    const float* const row = found.data() + 2 * i;
    const RotatedBytes right(std::vector<float>(row, row + 2));
    ASSERT_EQ(to.low[4 * i + 1], right.a[1]) << row[0] << ", " << row[1];
    ASSERT_EQ(to.sum[i], 127 + right.a[1]);
  }
}

// What lies beyond the matrix, and in rows that are no numbers, reaches no result, and so shows only here.
TEST_P(ChannelPanels, FillWhatIsNoNumber) {
  constexpr int64_t kRows = 3, kDepth = 133;
  const int64_t columns = columns_of_panels(), width = columns - 1;
  const Tensor w = normal_matrix(kDepth, width, 4);
  Guarded<std::byte> panel(channel_panel_bytes(kDepth, columns));
  std::fill_n(panel.data(), channel_panel_bytes(kDepth, columns), std::byte{77});
  // Memory that packing keeps is full of others' numbers.
  const Tensor others = normal_matrix(kDepth, columns, 6);
  pack_channel_panel(StoredMatrix::of(others.view()), 0, columns, columns, panel.data());
  pack_channel_panel(StoredMatrix::of(w.view()), 0, width, columns, panel.data());
  const int64_t depth = channel_depth(kDepth);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      if (k < kDepth && j < width) continue;
      ASSERT_EQ(panel.data()[(k / 4 * columns + j) * 4 + k % 4], std::byte{128}) << k << "," << j;
    }
  }
  EXPECT_EQ(reinterpret_cast<const float*>(panel.data() + depth * columns)[width], 0);

  Tensor x = normal_matrix(kRows, kDepth, 5);
  x(1, 5) = std::numeric_limits<float>::quiet_NaN();
  x(2, 130) = std::numeric_limits<float>::infinity();
  Guarded<std::byte> bytes(channel_rows_bytes(kRows, kDepth));
  std::fill_n(bytes.data(), channel_rows_bytes(kRows, kDepth), std::byte{77});
  const ChannelRows rows = place_channel_rows(kRows, kDepth, bytes.data());
  fill_channel_rows(x.view(), rows, 0, kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    int32_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int8_t a = rows.low[i * depth + k];
      if (i > 0 || k >= kDepth) {
        ASSERT_EQ(a, 0) << i << "," << k;
      }
      sum += a;
    }
    EXPECT_EQ(rows.sum[i], sum);
    EXPECT_EQ(std::isnan(rows.scale[i]), i > 0);
  }
}

TEST_P(ChannelPanels, OfNoNumbersAreZero) {
  const Tensor x(3, 0), w(0, 5);
  Tensor y(3, 5);
  y.fill(9);
  multiply_channels_of(kernel_, x, StoredMatrix::of(w.view()), y.view());
  for (int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.data()[i], 0);
}

// Integers of the largest magnitude, and sums that are near 0 after they were far from it, for the largest depths.
TEST_P(ChannelPanels, SumIntegersExactly) {
  const int64_t columns = columns_of_panels();
  for (const int64_t k : {int64_t{128}, int64_t{65536}, kMostChannelDepth}) {
    constexpr int64_t kRows = 7;
    Guarded<std::byte> row_bytes(channel_rows_bytes(kRows, k)), panel(channel_panel_bytes(k, columns));
    const ChannelRows rows = place_channel_rows(kRows, k, row_bytes.data());
    Random random(static_cast<uint64_t>(k));
    for (int64_t i = 0; i < kRows; ++i) {
      rows.scale[i] = 1;
      rows.sum[i] = 0;
      for (int64_t n = 0; n < k; ++n) {
        const int choice[] = {127, -127, n % 2 == 0 ? 127 : -127, n < k / 2 ? 127 : -127};
        const int a = i < 4 ? choice[i] : static_cast<int>(random.bits() % 255) - 127;
        rows.low[i * k + n] = static_cast<int8_t>(a);
        rows.sum[i] += a;
      }
    }
    for (int64_t at = 0; at < k * columns; ++at) {
      const int64_t n = at / (4 * columns) * 4 + at % 4, j = at / 4 % columns;
      const int choice[] = {255, 1, n % 2 == 0 ? 255 : 1, n < k / 2 ? 255 : 1};
      panel.data()[at] = static_cast<std::byte>(j < 4 ? choice[j] : static_cast<int>(random.bits() & 255));
    }
    auto* const scales = reinterpret_cast<float*>(panel.data() + k * columns);
    std::fill_n(scales, columns, 1.0f);
    Tensor y(kRows, columns);
    multiply_channel_panel(rows, panel.data(), kernel_, y.view(), false);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        int64_t sum = 0;
        for (int64_t n = 0; n < k; ++n)
          sum += rows.low[i * k + n] *
                 (static_cast<int64_t>(panel.data()[(n / 4 * columns + j) * 4 + n % 4]) - 128);
        ASSERT_EQ(y(i, j), static_cast<float>(sum)) << "row " << i << ", column " << j << " of " << k;
      }
    }
  }
}

TEST_P(ChannelPanels, RotateOrthogonally) {
  constexpr int64_t kDepth = 128 + 64 + 32 + 16 + 4 + 1;
  Tensor identity(kDepth, kDepth);
  for (int64_t k = 0; k < kDepth; ++k) identity(k, k) = 1;
  Guarded<std::byte> bytes(channel_rows_bytes(kDepth, kDepth));
  const ChannelRows rows = place_channel_rows(kDepth, kDepth, bytes.data());
  fill_channel_rows(identity.view(), rows, 0, kDepth);
  for (int64_t i = 0; i < kDepth; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      ASSERT_EQ(rows.low[i * rows.depth + j], rows.low[j * rows.depth + i]);
      double dot = 0;
      for (int64_t k = 0; k < rows.depth; ++k)
        dot += rows.low[i * rows.depth + k] * rows.low[j * rows.depth + k];
      ASSERT_NEAR(dot * rows.scale[i] * rows.scale[j], i == j ? 128 : 0, 1e-4) << i << "," << j;
    }
  }
}

TEST_P(ChannelPanels, OfZeroTinyHugeAndNoNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0f, 1e-45f, 0x1p-108f, 0x1p-107f, 0x1p-101f, 0x1p-100f, 2e36f, 3e36f, 1e38f,
                            3.4e38f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    SCOPED_TRACE(value);
    Tensor x = normal_matrix(4, 171, 8), w = normal_matrix(171, 67, 9);
    x(1, 33) = value;
    w(70, 1) = value;
    for (int64_t k = 0; k < 171; ++k) x(2, k) = w(k, 2) = w(k, 66) = value;
    expect_the_formula_of_channels(kernel_, x, StoredMatrix::of(w.view()));
    Tensor y(4, 67);
    multiply_channels_of(kernel_, x, StoredMatrix::of(w.view()), y.view());
    EXPECT_TRUE(std::isfinite(y(0, 0)) && std::isfinite(y(3, 65)));  // what is beside them
    if (!std::isfinite(value)) {
      EXPECT_TRUE(std::isnan(y(1, 0)) && std::isnan(y(2, 5)) && std::isnan(y(0, 1)) && std::isnan(y(3, 66)));
    }
    if (value == 0) {
      EXPECT_TRUE(y(2, 5) == 0 && y(0, 66) == 0);
    }
    // Sums of 128 are beyond float32: never a wrong number.
    if (value == 1e38f) {
      EXPECT_TRUE(std::isnan(y(2, 0)) && std::isnan(y(0, 2)));
    }
    if (value == 2e36f) {
      EXPECT_TRUE(std::isfinite(y(2, 0)) && std::isfinite(y(0, 2)));
    }
  }
}

TEST_P(ChannelPanels, DependNeitherOnOtherRowsNorOnThreads) {
  const Tensor x = normal_matrix(101, 401, 1), w = normal_matrix(401, 211, 2);
  Tensor all(101, 211), one(1, 211), added(101, 211);
  const int before = thread_count();
  set_thread_count(3);
  multiply_channels_of(kernel_, x, StoredMatrix::of(w.view()), all.view());
  set_thread_count(1);
  for (const int64_t row : {0, 1, 50, 100}) {
    Tensor alone(1, 401);
    std::copy_n(x.view().row(row), 401, alone.data());
    multiply_channels_of(kernel_, alone, StoredMatrix::of(w.view()), one.view());
    ASSERT_EQ(std::memcmp(one.data(), all.view().row(row), 211 * sizeof(float)), 0) << row;
  }
  added.fill(1);
  multiply_channels_of(kernel_, x, StoredMatrix::of(w.view()), added.view(), true);
  for (int64_t i = 0; i < all.size(); ++i) ASSERT_EQ(added.data()[i], 1 + all.data()[i]);
  set_thread_count(before);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ChannelPanels, testing::ValuesIn(int8_kernels()),
                         [](const auto& tested) { return kernel_label(tested.param); });

/// Root of the mean square of the error of X W, over that of a sum's typical size |x_i| |w_j|.
double error_of_channels(const Tensor& x, const Tensor& w) {
  Tensor y(x.rows(), w.cols());
  multiply_channels_of(kernel_for(Precision::kFast, WeightsKind::kNumbers), x, StoredMatrix::of(w.view()),
                       y.view());
  double error = 0, size = 0;
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < w.cols(); ++j) {
      double right = 0, x_squares = 0, w_squares = 0;
      for (int64_t k = 0; k < x.cols(); ++k) {
        right += static_cast<double>(x(i, k)) * w(k, j);
        x_squares += static_cast<double>(x(i, k)) * x(i, k);
        w_squares += static_cast<double>(w(k, j)) * w(k, j);
      }
      error += (y(i, j) - right) * (y(i, j) - right);
      size += x_squares * w_squares / static_cast<double>(x.cols());
    }
  }
  return std::sqrt(error / size);
}

// Of normal numbers the largest of hundreds is some 3.2 times the typical one, so a step is a 40th of this, and the error of each
// factor 1 / sqrt(12) of that: 0.010 together. Three outliers in a row of 384, which are as large as all others together, cost
// nothing (0.009); without a rotation they leave an error of 0.023.
TEST(ChannelPanelsExactness, SurvivesOutliers) {
  Tensor x = normal_matrix(31, 384, 2);
  const Tensor w = normal_matrix(384, 97, 3);
  const double plain = error_of_channels(x, w);
  EXPECT_LT(plain, 0.012);
  EXPECT_GT(plain, 0.005);
  for (int64_t i = 0; i < x.rows(); ++i) x(i, 17) = x(i, 200) = x(i, 300) = i % 2 == 0 ? 20.0f : -20.0f;
  EXPECT_LT(error_of_channels(x, w), 0.012);
}

TEST(ChannelRows, HaveAtMostTheNumbersWhoseSumsFit) {
  std::byte memory[64];
  EXPECT_THROW(place_channel_rows(0, kMostChannelDepth + 1, memory), InternalError);
  EXPECT_EQ(place_channel_rows(0, kMostChannelDepth, memory).depth, kMostChannelDepth);
}

}  // namespace
}  // namespace mh
