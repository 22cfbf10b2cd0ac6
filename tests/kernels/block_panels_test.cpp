// Products with blocks have the bits of products with the numbers that the blocks stand for.
#include "multihead/kernels/block_panels.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "multihead/base/block_parts.h"
#include "multihead/base/random.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/on_target.h"

namespace mh {
namespace {

/// Where d and m lie in a block; -1: there is no m.
struct ScalesAt {
  int d, m;
};
ScalesAt scales_at(BlockType type) {
  switch (type) {
    case BlockType::kQ2_K:
      return {80, 82};
    case BlockType::kQ3_K:
      return {108, -1};
    case BlockType::kQ6_K:
      return {208, -1};
    default:
      return {0, block_layout(type).has_least ? 2 : -1};
  }
}

/// Random blocks in memory of their own, with scales that are finite: some 0, subnormal or the largest.
struct Blocks {
  std::vector<std::byte> bytes;
  BlockMatrix matrix;

  Blocks(BlockType type, int64_t rows, int64_t cols, uint64_t seed, bool reversed = false) {
    matrix = {.type = type, .rows = rows, .cols = cols};
    bytes.resize(static_cast<size_t>(rows * matrix.row_bytes() + 1));
    Random random(seed);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
    std::byte* at = bytes.data() + 1;  // of no alignment
    matrix.data = at;
    constexpr uint16_t kScales[] = {0, 0x8000, 1, 0x83FF, 0x0400, 0x3C00, 0xB555, 0x2E66, 0x7BFF};
    const BlockLayout layout = block_layout(type);
    for (int64_t block = 0; block < rows * cols / layout.numbers; ++block, at += layout.bytes) {
      for (const int place : {scales_at(type).d, scales_at(type).m})
        if (place >= 0) std::memcpy(at + place, &kScales[random.bits() % std::size(kScales)], 2);
    }
    if (!reversed) return;
    matrix.order.resize(static_cast<size_t>(rows));
    std::iota(matrix.order.rbegin(), matrix.order.rend(), 0);
  }

  /// By the formula, in float64, where only the last step rounds.
  Tensor numbers() const {
    const BlockLayout layout = block_layout(matrix.type);
    Tensor to(matrix.rows, matrix.cols);
    for (int64_t i = 0; i < to.rows(); ++i) {
      for (int64_t begin = 0; begin < to.cols(); begin += layout.numbers) {
        const BlockParts parts(matrix.type, matrix.row(i) + begin / layout.numbers * layout.bytes);
        const double d = from_float16(parts.d), m = layout.has_least ? from_float16(parts.m) : 0;
        for (int64_t k = 0; k < layout.numbers; ++k) {
          const int64_t part = k / layout.part;
          to(i, begin + k) =
              static_cast<float>(d * parts.s[part] * (parts.q[k] - layout.offset) + m * parts.t[part]);
        }
      }
    }
    return to;
  }
};

Tensor rows_of(int64_t rows, int64_t cols) {
  Tensor t(rows, cols);
  Random random(7);
  for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<float>(random.normal());
  return t;
}

/// [b_0 | b_1 | ...] by blocks and by float32, times so many rows, overwriting and adding.
void expect_the_same_bits(const std::vector<const Blocks*>& parts, int64_t rows) {
  std::vector<const BlockMatrix*> matrices;
  std::vector<Tensor> numbers;
  int64_t cols = 0;
  for (const Blocks* part : parts) {
    matrices.push_back(&part->matrix);
    numbers.push_back(part->numbers());
    cols += part->matrix.rows;
  }
  std::vector<StoredMatrix> stored;
  for (const Tensor& part : numbers) stored.push_back(StoredMatrix::of(part.view()).transposed());
  PackedMatrix blocks, floats;
  int let_go = 0;
  blocks.pack_transposed(matrices, [&] { ++let_go; });
  EXPECT_EQ(let_go, 1);  // a few hundred KiB
  floats.pack(stored);
  ASSERT_TRUE(blocks.has_blocks());
  ASSERT_EQ(blocks.cols(), floats.cols());
  const Tensor x = rows_of(rows, floats.rows());
  Tensor y(rows, cols), expected(rows, cols);
  for (const Write write : {Write::kOverwrite, Write::kAdd}) {
    multiply(x.view(), blocks, y.view(), write);
    multiply(x.view(), floats, expected.view(), write);
    for (int64_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(y.data()[i]), std::bit_cast<uint32_t>(expected.data()[i]))
          << "row " << i / cols << ", column " << i % cols << ": " << y.data()[i] << " and "
          << expected.data()[i];
    }
  }
}

class BlockPanels : public testing::TestWithParam<std::string> {};

TEST_P(BlockPanels, HaveTheBitsOfTheirNumbers) {
  const OnTarget on(GetParam());
  for (const BlockType type :
       {BlockType::kQ4_0, BlockType::kQ4_1, BlockType::kQ5_0, BlockType::kQ5_1, BlockType::kQ8_0,
        BlockType::kQ2_K, BlockType::kQ3_K, BlockType::kQ4_K, BlockType::kQ5_K, BlockType::kQ6_K}) {
    // One block, and rows that products cut within a block, and within eight numbers.
    const bool large = block_layout(type).numbers == 256;
    for (const int64_t depth : large ? std::array{256, 1280, 1792} : std::array{32, 416, 1120}) {
      const Blocks blocks(type, 131, depth, 3 + static_cast<uint64_t>(depth), depth == 416);
      for (const int64_t rows : {1, 2, 7, 211}) expect_the_same_bits({&blocks}, rows);
    }
  }
}

TEST_P(BlockPanels, OfSeveralTypesSideBySide) {
  const OnTarget on(GetParam());
  const Blocks a(BlockType::kQ4_1, 67, 96, 1), b(BlockType::kQ8_0, 5, 96, 2),
      c(BlockType::kQ4_0, 128, 96, 3, true);
  for (const int64_t rows : {1, 6, 97}) expect_the_same_bits({&a, &b, &c}, rows);
}

INSTANTIATE_TEST_SUITE_P(Targets, BlockPanels, testing::ValuesIn(dispatch_targets()),
                         [](const auto& tested) { return tested.param; });

TEST(BlockPanelThreads, GiveTheSameBits) {
  const Blocks blocks(BlockType::kQ4_1, 257, 288, 5);
  const BlockMatrix* const part = &blocks.matrix;
  PackedMatrix packed;
  packed.pack_transposed({&part, 1}, [] {});
  const Tensor x = rows_of(23, 288);
  Tensor one(23, 257), three(23, 257);
  const int before = thread_count();
  set_thread_count(1);
  multiply(x.view(), packed, one.view());
  set_thread_count(3);
  multiply(x.view(), packed, three.view());
  set_thread_count(before);
  EXPECT_EQ(std::memcmp(one.data(), three.data(), static_cast<size_t>(one.size()) * sizeof(float)), 0);
}

// A matrix that becomes float32, as one does whose weight is changed, forgets its blocks.
TEST(BlockPanelThreads, FloatsTakeTheirPlace) {
  const Blocks blocks(BlockType::kQ8_0, 33, 64, 6);
  const BlockMatrix* const part = &blocks.matrix;
  PackedMatrix packed;
  packed.pack_transposed({&part, 1}, [] {});
  const Tensor other = rows_of(64, 33), x = rows_of(2, 64);
  packed.pack(other.view());
  EXPECT_FALSE(packed.has_blocks());
  PackedMatrix fresh;
  fresh.pack(other.view());
  Tensor y(2, 33), expected(2, 33);
  multiply(x.view(), packed, y.view());
  multiply(x.view(), fresh, expected.view());
  EXPECT_EQ(std::memcmp(y.data(), expected.data(), static_cast<size_t>(y.size()) * sizeof(float)), 0);
}

}  // namespace
}  // namespace mh
