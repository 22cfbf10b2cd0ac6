// Gradients from panels of fewer bits have the bits of products with their numbers, transposed, in float32.
#include "multihead/kernels/gradient_product.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/base/thread_pool.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/on_target.h"
#include "tests/kernels/random_blocks.h"

namespace mh {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

Tensor normal_rows(int64_t rows, int64_t cols) {
  Tensor t(rows, cols);
  Random random(11);
  for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<float>(random.normal());
  return t;
}

/// B = [parts | ...] in panels of fewer bits, and B^T in float32 panels.
struct BothWays {
  PackedMatrix small, transposed;
  int64_t outputs = 0;

  explicit BothWays(const std::vector<const RandomBlocks*>& parts, Precision precision = Precision::kSame) {
    std::vector<const BlockMatrix*> matrices;
    std::vector<Tensor> numbers;
    std::vector<StoredMatrix> stored;
    for (const RandomBlocks* part : parts) {
      matrices.push_back(&part->matrix);
      numbers.push_back(part->numbers());
      outputs += part->matrix.rows;
    }
    for (const Tensor& part : numbers) stored.push_back(StoredMatrix::of(part.view()).transposed());
    small.pack_transposed(matrices, precision, [] {});
    transposed.pack_transposed(stored);
  }
  explicit BothWays(const std::vector<StoredMatrix>& parts, Precision precision = Precision::kSame) {
    for (const StoredMatrix& part : parts) outputs += part.cols;
    small.pack(parts, precision);
    transposed.pack_transposed(parts);
  }
};

/// So many rows of dY times B^T, overwriting and adding, into a part of a wider matrix.
void expect_the_bits_of_floats(const BothWays& b, int64_t rows) {
  ASSERT_NE(b.small.kind(), PanelKind::kFloat32);
  ASSERT_TRUE(b.small.is_exact());
  const int64_t inputs = b.small.rows();
  const Tensor wide = normal_rows(rows, b.outputs + 3);
  const ConstMatrixView dy = wide.view().columns_between(1, 1 + b.outputs);
  Tensor dx(rows, inputs + 2), expected(rows, inputs + 2);
  dx.fill(kNotANumber);
  expected.fill(kNotANumber);
  for (const Write write : {Write::kOverwrite, Write::kAdd}) {
    std::vector<int> made(static_cast<size_t>(rows));
    const auto make_rows = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++made[static_cast<size_t>(i)];
    };
    const MatrixView to = dx.view().columns_between(1, 1 + inputs),
                     floats = expected.view().columns_between(1, 1 + inputs);
    multiply_gradient(dy, {.panels = b.small, .transposed = false}, to, write, make_rows);
    multiply_gradient(dy, {.panels = b.transposed, .transposed = true}, floats, write, make_rows);
    for (const int times : made) ASSERT_EQ(times, 2);
    for (int64_t i = 0; i < dx.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(dx.data()[i]), std::bit_cast<uint32_t>(expected.data()[i]))
          << "row " << i / dx.cols() << ", column " << i % dx.cols() << ": " << dx.data()[i] << " and "
          << expected.data()[i];
    }
  }
}

class GradientProduct : public testing::TestWithParam<std::string> {
 private:
  OnTarget on_{GetParam()};
};

TEST_P(GradientProduct, OfBlocksOfEveryType) {
  for (const BlockType type : kBlockTypes) {
    const bool large = block_layout(type).numbers == 256;
    for (const int64_t inputs : large ? std::array{256, 768} : std::array{32, 416}) {
      // Sums over up to 384 numbers run in one block, those over 391 in two that are cut within a panel.
      for (const int64_t outputs : {1, 131, 391}) {
        const RandomBlocks blocks(type, outputs, inputs, 5 + static_cast<uint64_t>(outputs), outputs == 131);
        const BothWays b({&blocks});
        for (const int64_t rows : {1, 7, 67}) expect_the_bits_of_floats(b, rows);
      }
    }
  }
}

TEST_P(GradientProduct, OfManyRowsAndOutputs) {
  const RandomBlocks blocks(BlockType::kQ4_1, 1376, 224, 3);
  const BothWays b({&blocks});
  for (const int64_t rows : {193, 389}) expect_the_bits_of_floats(b, rows);
}

TEST_P(GradientProduct, OfSeveralTypesSideBySide) {
  const RandomBlocks a(BlockType::kQ4_1, 67, 96, 1), b(BlockType::kQ8_0, 5, 96, 2),
      c(BlockType::kQ4_0, 128, 96, 3, true), d(BlockType::kQ5_0, 233, 96, 4);
  for (const int64_t rows : {1, 33, 97}) expect_the_bits_of_floats(BothWays({&a, &b, &c, &d}), rows);
}

TEST_P(GradientProduct, OfBlocksWhoseRowsAreRounded) {
  const RandomBlocks blocks(BlockType::kQ6_K, 71, 256, 6);
  for (const Precision precision : {Precision::kNear, Precision::kFast})
    expect_the_bits_of_floats(BothWays({&blocks}, precision), 19);
}

TEST_P(GradientProduct, OfHalves) {
  for (const NumberType type : {NumberType::kBFloat16, NumberType::kFloat16}) {
    std::vector<uint16_t> bits;
    Random random(17);
    for (int i = 0; i < 211 * 431; ++i) {
      const auto x = static_cast<float>(random.normal());
      bits.push_back(type == NumberType::kBFloat16 ? to_bfloat16(x) : to_float16(x));
    }
    const StoredMatrix w{.data = reinterpret_cast<const std::byte*>(bits.data()),
                         .type = type,
                         .rows = 211,
                         .cols = 431,
                         .row_stride = 431};
    const BothWays one({w}),
        three({w.columns_between(0, 3), w.columns_between(3, 201), w.columns_between(201, 431)}),
        as_stored({w.transposed()});
    for (const BothWays* b : {&one, &three, &as_stored})
      for (const int64_t rows : {1, 13, 101}) expect_the_bits_of_floats(*b, rows);
  }
}

TEST_P(GradientProduct, OfAWindowOfColumns) {
  const RandomBlocks blocks(BlockType::kQ5_1, 307, 64, 8);
  const BothWays b({&blocks});
  const Tensor numbers = blocks.numbers(), wide = normal_rows(41, 307);
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 64}, {64, 128}, {63, 190}, {256, 307}}) {
    const ConstMatrixView dy = wide.view().columns_between(begin, end);
    PackedMatrix part;
    part.pack(numbers.view().rows_between(begin, end));
    Tensor dx_t(64, 41), expected(41, 64);
    for (const Write write : {Write::kOverwrite, Write::kAdd}) {
      multiply_window(dy, b.small, begin, dx_t.view(), write == Write::kAdd);
      multiply(dy, part, expected.view(), write);
      for (int64_t i = 0; i < 41; ++i) {
        for (int64_t k = 0; k < 64; ++k)
          ASSERT_EQ(std::bit_cast<uint32_t>(dx_t(k, i)), std::bit_cast<uint32_t>(expected(i, k)))
              << i << " " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, GradientProduct, testing::ValuesIn(dispatch_targets()),
                         [](const auto& tested) { return tested.param; });

TEST(GradientProductThreads, GiveTheSameBits) {
  const RandomBlocks blocks(BlockType::kQ4_1, 577, 416, 5);
  const BothWays b({&blocks});
  const Tensor dy = normal_rows(229, 577);
  Tensor one(229, 416), three(229, 416);
  const int before = thread_count();
  const auto product = [&](int threads, Tensor& to) {
    set_thread_count(threads);
    multiply_gradient(dy.view(), {.panels = b.small, .transposed = false}, to.view(), Write::kOverwrite,
                      [](int64_t, int64_t) {});
  };
  product(1, one);
  product(3, three);
  set_thread_count(before);
  EXPECT_EQ(std::memcmp(one.data(), three.data(), static_cast<size_t>(one.size()) * sizeof(float)), 0);
}

}  // namespace
}  // namespace mh
