// Products with panels of 16 bits: exact ones have the bits of products with the same numbers as float32, those of rows that are
// rounded, too, are near the sums that they stand for.
#include "multihead/kernels/half_panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/base/random.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/simd.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/normal_matrix.h"
#include "tests/kernels/on_target.h"

namespace mh {
namespace {

constexpr NumberType kHalves[] = {NumberType::kBFloat16, NumberType::kFloat16};

/// A matrix [rows, cols] as a file stores it, transposed or not, a part of a wider one.
struct StoredHalves {
  std::vector<uint16_t> bits;
  StoredMatrix matrix;

  StoredHalves(NumberType type, int64_t rows, int64_t cols, bool transposed) {
    const int64_t outer = transposed ? cols : rows, inner = transposed ? rows : cols, wide = inner + 3;
    bits.resize(static_cast<size_t>(outer * wide + 1));
    Random random(17);
    for (uint16_t& number : bits) {
      const auto x = static_cast<float>(random.normal());
      number = type == NumberType::kBFloat16 ? to_bfloat16(x) : to_float16(x);
    }
    // Both zeros, the smallest and the largest subnormal, the smallest normal number and the largest (for bfloat16 others).
    constexpr uint16_t kExtremes[] = {0, 0x8000, 1, 0x83FF, 0x007F, 0x0400, 0x7BFF, 0xFBFF};
    for (size_t i = 0; i < std::size(kExtremes); ++i) bits[1 + (i * 7919) % (bits.size() - 1)] = kExtremes[i];
    matrix = {.data = reinterpret_cast<const std::byte*>(bits.data() + 1),
              .type = type,
              .rows = outer,
              .cols = inner,
              .row_stride = wide};
    if (transposed) matrix = matrix.transposed();
  }
};

/// Panels of b one after the other.
struct PanelsOfHalves {
  int64_t columns, bytes;
  AlignedBuffer<std::byte> data;

  PanelsOfHalves(const StoredMatrix& b, int64_t panel)
      : columns(panel), bytes(half_panel_bytes(b.rows, panel)) {
    data.resize((b.cols + panel - 1) / panel * bytes);
    std::memset(data.data(), 0xFF, static_cast<size_t>(data.size()));
    for (int64_t n = 0; n < b.cols; n += panel)
      pack_half_panel(b, b.type == NumberType::kFloat32 ? NumberType::kBFloat16 : b.type, n,
                      std::min(panel, b.cols - n), panel, data.data() + n / panel * bytes);
  }
  /// use(panel, columns of c) for each.
  template <class Use>
  void for_each(MatrixView c, Use&& use) const {
    for (int64_t n = 0; n < c.cols; n += columns)
      use(data.data() + n / columns * bytes, c.columns_between(n, std::min(c.cols, n + columns)));
  }
};

int64_t panel_columns() {
  PackedMatrix packed;
  packed.pack(Tensor(1, 1).view());
  return packed.panel();
}

void expect_bits_of(const Tensor& y, const Tensor& expected) {
  for (int64_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(y.data()[i]), std::bit_cast<uint32_t>(expected.data()[i]))
        << "row " << i / y.cols() << ", column " << i % y.cols() << ": " << y.data()[i] << " and "
        << expected.data()[i];
  }
}

class HalfPanels : public testing::TestWithParam<std::string> {
 private:
  OnTarget on_{GetParam()};
};

TEST_P(HalfPanels, HaveTheBitsOfTheirNumbers) {
  // The sums of float32 panels are cut at such places only beyond 384.
  const std::vector<std::vector<int64_t>> cuts = {
      {0, 1}, {0, 2}, {0, 53}, {0, 7, 24, 25, 131}, {0, 1, 3, 257, 383}};
  for (const NumberType type : kHalves) {
    for (const auto& cut : cuts) {
      const int64_t depth = cut.back();
      for (const bool transposed : {false, true}) {
        const StoredHalves halves(type, depth, 151, transposed);
        const PanelsOfHalves panels(halves.matrix, panel_columns());
        std::vector<PackedMatrix> floats(cut.size() - 1);
        for (size_t i = 0; i + 1 < cut.size(); ++i)
          floats[i].pack(halves.matrix.rows_between(cut[i], cut[i + 1]));
        for (const int64_t rows : {1, 2, 7, 211}) {
          const Tensor x = normal_matrix(rows, depth, 5);
          Tensor y(rows, 151), expected(rows, 151);
          for (const bool add : {false, true}) {
            for (size_t i = 0; i + 1 < cut.size(); ++i) {
              const ConstMatrixView a = x.view().columns_between(cut[i], cut[i + 1]);
              panels.for_each(y.view(), [&](const std::byte* panel, MatrixView c) {
                multiply_half_panel(a, type, panel, cut[i], c, add || i > 0);
              });
              multiply(a, floats[i], expected.view(), add || i > 0 ? Write::kAdd : Write::kOverwrite);
            }
            expect_bits_of(y, expected);
          }
        }
      }
    }
  }
}

TEST_P(HalfPanels, OfEveryFiniteNumber) {
  for (const NumberType type : kHalves) {
    const uint32_t exponent = type == NumberType::kBFloat16 ? 0x7F80 : 0x7C00;
    std::vector<uint16_t> bits;
    for (uint32_t number = 0; number < 0x10000; ++number)
      bits.push_back((number & exponent) == exponent ? uint16_t{0} : static_cast<uint16_t>(number));
    const StoredMatrix b{.data = reinterpret_cast<const std::byte*>(bits.data()),
                         .type = type,
                         .rows = 2,
                         .cols = 0x8000,
                         .row_stride = 0x8000};
    const PanelsOfHalves panels(b, panel_columns());
    Tensor x(2, 2), y(2, b.cols), expected(2, b.cols);
    x(0, 0) = x(1, 1) = 1;  // each row of b
    panels.for_each(y.view(), [&](const std::byte* panel, MatrixView c) {
      multiply_half_panel(x.view(), type, panel, 0, c, false);
    });
    for (int64_t k = 0; k < 2; ++k) b.read_row(k, 0, b.cols, expected.view().row(k));
    for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.data()[i], expected.data()[i]) << i;
  }
}

TEST_P(HalfPanels, OfFloatsAreThoseOfTheNearestBFloat16) {
  const Tensor w = normal_matrix(37, 89, 2);
  std::vector<uint16_t> bits;
  for (int64_t i = 0; i < w.size(); ++i) bits.push_back(to_bfloat16(w.data()[i]));
  StoredMatrix b = StoredMatrix::of(w.view());
  const PanelsOfHalves rounded(b, panel_columns());
  b.data = reinterpret_cast<const std::byte*>(bits.data());
  b.type = NumberType::kBFloat16;
  const PanelsOfHalves expected(b, panel_columns());
  ASSERT_EQ(rounded.data.size(), expected.data.size());
  EXPECT_EQ(std::memcmp(rounded.data.data(), expected.data.data(), static_cast<size_t>(rounded.data.size())),
            0);
}

/// Rows rounded, in memory of their own.
struct RoundedRows {
  AlignedBuffer<std::byte> memory;
  HalfRows rows;

  explicit RoundedRows(ConstMatrixView a) {
    memory.resize(half_rows_bytes(a.rows, a.cols));
    std::memset(memory.data(), 0xFF, static_cast<size_t>(memory.size()));
    rows = place_half_rows(a.rows, a.cols, memory.data());
    fill_half_rows(a, rows, 0, a.rows / 2);
    fill_half_rows(a, rows, a.rows / 2, a.rows);
  }
};

TEST_P(HalfPanels, RowsAreRoundedToTheNearestAndEven) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {0.0f,        -0.0f,
                                1.0f,        1e-45f,
                                -0x1p-133f,  0x1p-126f,
                                0x1.FEp127f, 0x1.FEFFFEp127f,
                                0x1.FFp127f, -std::numeric_limits<float>::max(),
                                kInfinity,   -kInfinity};
  // Between two neighbours, the middle and beside it.
  for (const uint32_t upper : {0x3F800000u, 0x3F810000u, 0xC2FF0000u, 0x00010000u, 0x807F0000u})
    for (const uint32_t lower : {0x7FFFu, 0x8000u, 0x8001u})
      numbers.push_back(std::bit_cast<float>(upper | lower));
  for (const int64_t cols : {1, 2, 3, 23, static_cast<int>(numbers.size())}) {
    Tensor x(3, cols);
    for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = numbers[static_cast<size_t>(i) % numbers.size()];
    x(1, cols - 1) = std::bit_cast<float>(0x7F800001u);  // its upper half alone is infinity
    x(2, 0) = std::bit_cast<float>(0xFFFFFFFFu);
    const RoundedRows rounded(x.view());
    ASSERT_EQ(rounded.rows.depth, (cols + 1) / 2 * 2);
    for (int64_t i = 0; i < 3; ++i) {
      const uint16_t* const row = rounded.rows.rows_between(i, i + 1).numbers;
      for (int64_t k = 0; k < cols; ++k) {
        if (std::isnan(x(i, k))) {
          ASSERT_TRUE(std::isnan(from_bfloat16(row[k]))) << i << " " << k;
        } else {
          ASSERT_EQ(row[k], to_bfloat16(x(i, k))) << i << " " << k;  // of infinity, too
        }
      }
      if (cols % 2 == 1) {
        ASSERT_EQ(row[cols], 0);
      }
    }
  }
}

// Products of bfloat16 are exact in float32, and each of K additions rounds a sum that is at most that of all magnitudes.
TEST_P(HalfPanels, OfRoundedRowsAreNearTheirSums) {
  if (!runs(ProductKernel::kBFloat16Dots, processor_features()))
    GTEST_SKIP() << "no instruction for sums of products of bfloat16 on " << GetParam();
  for (const int64_t depth : {1, 2, 53, 383, 1531}) {
    const StoredHalves halves(NumberType::kBFloat16, depth, 151, true);
    const PanelsOfHalves panels(halves.matrix, panel_columns());
    for (const int64_t rows : {1, 2, 6, 7, 97}) {
      const RoundedRows a(normal_matrix(rows, depth, 3).view());
      Tensor y(rows, 151), added(rows, 151);
      added.fill(1);
      panels.for_each(y.view(), [&](const std::byte* panel, MatrixView c) {
        multiply_half_rows(a.rows, panel, c, false);
      });
      panels.for_each(added.view(), [&](const std::byte* panel, MatrixView c) {
        multiply_half_rows(a.rows, panel, c, true);
      });
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < 151; ++j) {
          double sum = 0, magnitudes = 0;
          for (int64_t k = 0; k < depth; ++k) {
            const double product = static_cast<double>(from_bfloat16(a.rows.numbers[i * a.rows.depth + k])) *
                                   halves.matrix(k, j);
            sum += product;
            magnitudes += std::fabs(product);
          }
          // Numbers and sums below 2^-126 may be 0.
          const double bound = 1.01 * static_cast<double>(depth) * (0x1p-24 * magnitudes + 0x1p-120);
          ASSERT_NEAR(y(i, j), sum, bound) << depth << " " << i << " " << j;
          ASSERT_EQ(added(i, j), 1 + y(i, j));
        }
      }
    }
  }
}

TEST_P(HalfPanels, OfRoundedRowsDoNotDependOnOtherRows) {
  if (!runs(ProductKernel::kBFloat16Dots, processor_features()))
    GTEST_SKIP() << "no instruction for sums of products of bfloat16 on " << GetParam();
  const StoredHalves halves(NumberType::kBFloat16, 613, 151, true);
  const PanelsOfHalves panels(halves.matrix, panel_columns());
  const RoundedRows a(normal_matrix(23, 613, 3).view());
  const auto product = [&](int64_t begin, int64_t end) {
    Tensor y(end - begin, 151);
    panels.for_each(y.view(), [&](const std::byte* panel, MatrixView c) {
      multiply_half_rows(a.rows.rows_between(begin, end), panel, c, false);
    });
    return y;
  };
  const Tensor all = product(0, 23);
  for (int64_t count = 1; count <= 11; ++count) {
    for (int64_t begin = 0; begin + count <= 23; begin += count) {
      const Tensor some = product(begin, begin + count);
      ASSERT_EQ(std::memcmp(some.data(), all.view().row(begin), static_cast<size_t>(some.size()) * 4), 0);
    }
  }
}

TEST_P(HalfPanels, RowsThatAreNotFiniteStaySo) {
  if (!runs(ProductKernel::kBFloat16Dots, processor_features()))
    GTEST_SKIP() << "no instruction for sums of products of bfloat16 on " << GetParam();
  const Tensor w = normal_matrix(31, 5, 4);
  const PanelsOfHalves panels(StoredMatrix::of(w.view()), panel_columns());
  Tensor x = normal_matrix(3, 31, 6), y(3, 5);
  x(0, 30) = std::numeric_limits<float>::infinity();
  x(1, 30) = std::numeric_limits<float>::quiet_NaN();
  panels.for_each(y.view(), [&](const std::byte* panel, MatrixView c) {
    multiply_half_rows(RoundedRows(x.view()).rows, panel, c, false);
  });
  for (int64_t j = 0; j < 5; ++j) {
    EXPECT_EQ(y(0, j), std::copysign(x(0, 30), w(30, j)));
    EXPECT_TRUE(std::isnan(y(1, j)));
    EXPECT_TRUE(std::isfinite(y(2, j)));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, HalfPanels, testing::ValuesIn(dispatch_targets()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace mh
