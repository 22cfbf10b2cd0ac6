// Products with blocks have the bits of products with the numbers that the blocks stand for.
#include "multihead/kernels/block_panels.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/on_target.h"
#include "tests/kernels/random_blocks.h"

namespace mh {
namespace {

Tensor rows_of(int64_t rows, int64_t cols) {
  Tensor t(rows, cols);
  Random random(7);
  for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<float>(random.normal());
  return t;
}

/// [b_0 | b_1 | ...] by blocks and by float32, times so many rows, overwriting and adding.
void expect_the_same_bits(const std::vector<const RandomBlocks*>& parts, int64_t rows) {
  std::vector<const BlockMatrix*> matrices;
  std::vector<Tensor> numbers;
  int64_t cols = 0;
  for (const RandomBlocks* part : parts) {
    matrices.push_back(&part->matrix);
    numbers.push_back(part->numbers());
    cols += part->matrix.rows;
  }
  std::vector<StoredMatrix> stored;
  for (const Tensor& part : numbers) stored.push_back(StoredMatrix::of(part.view()).transposed());
  PackedMatrix blocks, floats;
  int let_go = 0;
  blocks.pack_transposed(matrices, Precision::kSame, [&] { ++let_go; });
  EXPECT_EQ(let_go, 1);  // a few hundred KiB
  floats.pack(stored);
  ASSERT_EQ(blocks.kind(), PanelKind::kBlocks);
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
  for (const BlockType type : kBlockTypes) {
    // One block, and rows that products cut within a block, and within eight numbers.
    const bool large = block_layout(type).numbers == 256;
    for (const int64_t depth : large ? std::array{256, 1280, 1792} : std::array{32, 416, 1120}) {
      const RandomBlocks blocks(type, 131, depth, 3 + static_cast<uint64_t>(depth), depth == 416);
      for (const int64_t rows : {1, 2, 7, 211}) expect_the_same_bits({&blocks}, rows);
    }
  }
}

TEST_P(BlockPanels, OfSeveralTypesSideBySide) {
  const OnTarget on(GetParam());
  const RandomBlocks a(BlockType::kQ4_1, 67, 96, 1), b(BlockType::kQ8_0, 5, 96, 2),
      c(BlockType::kQ4_0, 128, 96, 3, true);
  for (const int64_t rows : {1, 6, 97}) expect_the_same_bits({&a, &b, &c}, rows);
}

INSTANTIATE_TEST_SUITE_P(Targets, BlockPanels, testing::ValuesIn(dispatch_targets()),
                         [](const auto& tested) { return tested.param; });

// Rows of integers with one d give the panel of the blocks that each have it.
TEST(BlockPanelsOfRows, AreThoseOfTheirBlocks) {
  constexpr int64_t kRows = 7, kCols = 96, kColumns = 16;
  for (const bool reversed : {false, true}) {
    RandomBlocks blocks(BlockType::kQ8_0, kRows, kCols, 11, reversed);
    BlockMatrix rows = blocks.matrix;
    std::vector<std::byte> integers(kRows * kCols);
    for (int64_t i = 0; i < kRows; ++i) {
      rows.scales.push_back(static_cast<uint16_t>(0x3C01 + 77 * i));
      for (int64_t block = 0; block < kCols / 32; ++block) {
        std::byte* const at = blocks.bytes.data() + 1 + (i * kCols / 32 + block) * 34;
        std::memcpy(at, &rows.scales.back(), 2);
        std::memcpy(integers.data() + i * kCols + 32 * block, at + 2, 32);
      }
    }
    rows.data = integers.data();
    const auto bytes = static_cast<size_t>(block_panel_bytes(BlockType::kQ8_0, kCols, kColumns));
    std::vector<std::byte> expected(bytes), panel(bytes);
    pack_block_panel(blocks.matrix, 2, 5, kColumns, expected.data());
    pack_block_panel(rows, 2, 5, kColumns, panel.data());
    EXPECT_EQ(panel, expected) << reversed;
  }
}

TEST(BlockPanelThreads, GiveTheSameBits) {
  const RandomBlocks blocks(BlockType::kQ4_1, 257, 288, 5);
  const BlockMatrix* const part = &blocks.matrix;
  PackedMatrix packed;
  packed.pack_transposed({&part, 1}, Precision::kSame, [] {});
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
  const RandomBlocks blocks(BlockType::kQ8_0, 33, 64, 6);
  const BlockMatrix* const part = &blocks.matrix;
  PackedMatrix packed;
  packed.pack_transposed({&part, 1}, Precision::kSame, [] {});
  const Tensor other = rows_of(64, 33), x = rows_of(2, 64);
  packed.pack(other.view());
  EXPECT_EQ(packed.kind(), PanelKind::kFloat32);
  PackedMatrix fresh;
  fresh.pack(other.view());
  Tensor y(2, 33), expected(2, 33);
  multiply(x.view(), packed, y.view());
  multiply(x.view(), fresh, expected.view());
  EXPECT_EQ(std::memcmp(y.data(), expected.data(), static_cast<size_t>(y.size()) * sizeof(float)), 0);
}

}  // namespace
}  // namespace mh
