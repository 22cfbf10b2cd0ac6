// Products of integers with blocks have the bits of their formula (kernels/byte_rows.h, kernels/block_bytes.h) on every target.
#include "multihead/kernels/block_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "multihead/base/block_parts.h"
#include "multihead/base/precision.h"
#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/on_target.h"
#include "tests/kernels/random_blocks.h"

namespace mh {
namespace {

/// A group of 32 numbers as integers.
struct Group {
  std::array<int64_t, kByteGroup> a{};
  float scale = 0;

  Group(const float* x, bool wide) {
    const float most = wide ? 32512.0f : 127.0f;
    const float largest = largest_of(x);
    if (!std::isfinite(largest)) scale = std::numeric_limits<float>::quiet_NaN();
    if (!std::isfinite(largest) || largest < 0x1p-100f) return;
    scale = largest / most;
    const float inverse = most / largest;
    for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<int64_t>(std::nearbyint(x[k] * inverse));
  }

  static float largest_of(const float* x) {
    float largest = 0;
    for (int64_t k = 0; k < kByteGroup; ++k) {
      if (std::isnan(x[k])) return x[k];
      largest = std::max(largest, std::fabs(x[k]));
    }
    return largest;
  }
};

std::vector<Group> groups_of(ConstMatrixView x, int64_t row, Precision precision) {
  double squares = 0;
  for (int64_t k = 0; k < x.cols; k += kByteGroup) {
    const float largest = Group::largest_of(x.row(row) + k);
    squares += static_cast<double>(largest) * largest;
  }
  std::vector<Group> groups;
  for (int64_t k = 0; k < x.cols; k += kByteGroup) {
    const double largest = Group::largest_of(x.row(row) + k);
    const bool above = largest * largest > 2 * squares / (static_cast<double>(x.cols) / kByteGroup);
    groups.emplace_back(x.row(row) + k, precision == Precision::kNear || above);
  }
  return groups;
}

/// y_j of the formula.
float expected(const std::vector<Group>& groups, const BlockMatrix& blocks, int64_t column) {
  const BlockLayout layout = block_layout(blocks.type);
  float y = 0;
  for (int64_t begin = 0; begin < blocks.cols; begin += layout.numbers) {
    const BlockParts parts(blocks.type, blocks.row(column) + begin / layout.numbers * layout.bytes);
    for (int64_t part = 0; part < layout.parts(); ++part) {
      const int64_t first = part * layout.part;
      const Group& group = groups[static_cast<size_t>((begin + first) / kByteGroup)];
      int64_t dot = 0, sum = 0;
      for (int64_t k = first; k < first + layout.part; ++k) {
        const int64_t a = group.a[static_cast<size_t>((begin + k) % kByteGroup)];
        dot += a * integer_of(parts, layout, k);
        sum += a;
      }
      const float ds = parts.scale() * static_cast<float>(parts.s[part]);
      float r = static_cast<float>(dot) * ds;
      if (layout.has_least) {
        const float mt = parts.least() * static_cast<float>(parts.t[part]);
        r = std::fma(static_cast<float>(dot), ds, static_cast<float>(sum) * mt);
      }
      y = std::fma(group.scale, r, y);
    }
  }
  return y;
}

Tensor normal_rows(int64_t rows, int64_t cols, uint64_t seed, float largest = 40) {
  Tensor t(rows, cols);
  Random random(seed);
  for (int64_t i = 0; i < t.size(); ++i) {
    const float outlier = i % 97 == 5 ? largest : 1.0f;  // its group is wide
    t.data()[i] = outlier * static_cast<float>(random.normal());
  }
  return t;
}

PackedMatrix packed(const std::vector<const BlockMatrix*>& parts, PrecisionChoice precision) {
  PackedMatrix made;
  made.pack_transposed(parts, precision, [] {});
  return made;
}

void expect_the_formula(const RandomBlocks& blocks, const Tensor& x, PrecisionChoice precision) {
  const PackedMatrix b = packed({&blocks.matrix}, precision);
  Tensor y(x.rows(), b.cols());
  multiply(x.view(), b, y.view());
  for (int64_t i = 0; i < x.rows(); ++i) {
    const std::vector<Group> groups = groups_of(x.view(), i, precision.contract);
    for (int64_t j = 0; j < y.cols(); ++j) {
      const float right = expected(groups, blocks.matrix, j);
      if (std::isnan(right) && std::isnan(y(i, j))) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(y(i, j)), std::bit_cast<uint32_t>(right))
          << "row " << i << ", column " << j << ": " << y(i, j) << " and " << right;
    }
  }
}

class BlockBytes : public testing::TestWithParam<KernelOnTarget> {
 protected:
  /// The contract with the kernel that is tested.
  static PrecisionChoice by_kernel(Precision contract) { return {contract, GetParam().second}; }

 private:
  OnTarget on_{GetParam().first};
};

TEST_P(BlockBytes, HaveTheBitsOfTheFormula) {
  for (const BlockType type : kBlockTypes) {
    SCOPED_TRACE(static_cast<int>(type));
    for (const int64_t depth :
         block_layout(type).numbers == 256 ? std::array{256, 1280} : std::array{32, 416}) {
      const RandomBlocks blocks(type, 131, depth, 11 + static_cast<uint64_t>(depth), depth == 416);
      for (const Precision precision : {Precision::kFast, Precision::kNear}) {
        for (const int64_t rows : {1, 2, 3, 7})
          expect_the_formula(blocks, normal_rows(rows, depth, 5), by_kernel(precision));
      }
    }
  }
}

TEST_P(BlockBytes, OfTheLargestIntegers) {
  for (const BlockType type : kBlockTypes) {
    RandomBlocks blocks(type, 19, 512, 3);
    const Tensor least = [] {
      Tensor t(5, 512);
      for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = i % 3 == 0 ? 1.0f : -1.0f;
      return t;
    }();
    for (std::byte& byte : blocks.bytes) byte |= std::byte{0x80};  // signs of d, too
    for (const Precision precision : {Precision::kFast, Precision::kNear})
      expect_the_formula(blocks, least, by_kernel(precision));
  }
}

TEST_P(BlockBytes, OfZeroTinyHugeAndNoNumbers) {
  const RandomBlocks blocks(BlockType::kQ4_1, 67, 96, 3);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.0f, 1e-45f, 0x1p-101f, 0x1p-100f, 3e38f, kInfinity, -kInfinity,
                            std::numeric_limits<float>::quiet_NaN()}) {
    Tensor x = normal_rows(4, 96, 8);
    x(1, 33) = value;
    for (int64_t k = 0; k < 96; ++k) x(2, k) = value;
    for (const Precision precision : {Precision::kFast, Precision::kNear})
      expect_the_formula(blocks, x, by_kernel(precision));
  }
}

TEST_P(BlockBytes, DependNeitherOnOtherRowsNorOnThreads) {
  const RandomBlocks a(BlockType::kQ4_K, 257, 512, 1), c(BlockType::kQ8_0, 5, 512, 2),
      d(BlockType::kQ6_K, 131, 512, 4);
  const Tensor x = normal_rows(401, 512, 9);
  const int before = thread_count();
  for (const Precision precision : {Precision::kFast, Precision::kNear}) {
    const PackedMatrix b = packed({&a.matrix, &c.matrix, &d.matrix}, by_kernel(precision));
    Tensor all(401, b.cols()), one(1, b.cols()), added(401, b.cols());
    set_thread_count(3);
    multiply(x.view(), b, all.view());
    set_thread_count(1);
    for (const int64_t row : {0, 1, 200, 400}) {
      multiply(x.view().rows_between(row, row + 1), b, one.view());
      ASSERT_EQ(std::memcmp(one.data(), all.view().row(row), static_cast<size_t>(b.cols()) * 4), 0) << row;
    }
    added.fill(1);
    multiply(x.view(), b, added.view(), Write::kAdd);
    for (int64_t i = 0; i < all.size(); ++i) ASSERT_EQ(added.data()[i], 1 + all.data()[i]);
  }
  set_thread_count(before);
}

INSTANTIATE_TEST_SUITE_P(Kernels, BlockBytes, testing::ValuesIn(int8_kernels()),
                         [](const auto& tested) { return kernel_label(tested.param); });

// Against the numbers that the blocks stand for: 8 bits of an input leave an error of some tenths of a percent of a sum's
// typical size, 16 bits a 256th of that.
TEST(BlockBytesExactness, FollowsTheBits) {
  for (const BlockType type : kBlockTypes) {
    RandomBlocks blocks(type, 61, 512, 21);
    // Scales like those of a file, for errors that compare.
    const BlockLayout layout = block_layout(type);
    const ScalesAt at = scales_at(type);
    for (int64_t block = 0; block < 61 * 512 / layout.numbers; ++block) {
      const uint16_t scale = to_float16(0.01f);
      if (layout.has_exponent) blocks.bytes[static_cast<size_t>(1 + block * layout.bytes)] = std::byte{121};
      for (const int place : {at.d, at.m})
        if (place >= 0) std::memcpy(blocks.bytes.data() + 1 + block * layout.bytes + place, &scale, 2);
    }
    const Tensor x = normal_rows(7, 512, 2, 1), numbers = blocks.numbers();
    double error[2] = {}, size = 0;
    for (const Precision precision : {Precision::kFast, Precision::kNear}) {
      Tensor y(7, 61);
      multiply(x.view(), packed({&blocks.matrix}, precision), y.view());
      for (int64_t i = 0; i < 7; ++i) {
        for (int64_t j = 0; j < 61; ++j) {
          double right = 0, squares = 0;
          for (int64_t k = 0; k < 512; ++k) {
            right += static_cast<double>(x(i, k)) * numbers(j, k);
            squares += static_cast<double>(numbers(j, k)) * numbers(j, k);
          }
          size += squares / 2;
          error[precision == Precision::kNear] += (y(i, j) - right) * (y(i, j) - right);
        }
      }
    }
    EXPECT_LT(std::sqrt(error[0] / size), 0.01) << static_cast<int>(type);
    EXPECT_GT(std::sqrt(error[0] / size), 0.001) << static_cast<int>(type);
    EXPECT_LT(std::sqrt(error[1] / size), 0.01 / 200) << static_cast<int>(type);
  }
}

}  // namespace
}  // namespace mh
