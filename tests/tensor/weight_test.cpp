// Weights whose numbers are elsewhere: converted when they are read, or mapped from a file.
#include "multihead/tensor/weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/io/safetensors.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::ElementsAre;

/// Number (i, j) is 100 i + j; counts how often it is let go.
class Counted : public NumberSource {
 public:
  explicit Counted(int64_t cols) : cols_(cols) {}
  void read_rows(int64_t begin, int64_t end, float* to) const override {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < cols_; ++j) *to++ = static_cast<float>(100 * i + j);
    }
    rows_read += end - begin;
  }
  void release() const override { ++released; }

  mutable std::atomic<int64_t> rows_read = 0;
  mutable std::atomic<int> released = 0;

 private:
  int64_t cols_;
};

TEST(Weight, ConvertedNumbersAreLentAndLetGo) {
  const auto plain = std::make_shared<Counted>(3), other = std::make_shared<Counted>(71);
  const Weight weight(71, 3, plain, false), turned(71, 3, other, true);
  for (int again = 1; again < 3; ++again) {
    EXPECT_EQ(weight.borrow().matrix(70, 2), 7002);
    EXPECT_EQ(turned.borrow().matrix(70, 2), 270);
    EXPECT_EQ(plain->released, again);
    EXPECT_EQ(other->released, again);
    EXPECT_TRUE(weight.is_converted() && turned.is_converted());
  }
  plain->rows_read = 0;
  std::vector<float> row(3);
  weight.read_row(31, row.data());
  EXPECT_THAT(row, ElementsAre(3100, 3101, 3102));
  EXPECT_EQ(plain->rows_read, 1);
  turned.read_row(31, row.data());
  EXPECT_THAT(row, ElementsAre(31, 131, 231));
}

TEST(Weight, WhoAsksForRowsGetsThemInMemoryOfItsOwn) {
  Weight weight(5, 7, std::make_shared<Counted>(5), true);
  const Weight copy = weight;
  Weight moved = weight;
  weight = std::move(moved);
  EXPECT_FALSE(weight.is_own() || copy.is_own());
  EXPECT_EQ(std::as_const(weight)(3, 6), 603);
  EXPECT_TRUE(weight.is_own());
  EXPECT_EQ(weight.borrow().matrix.data, reinterpret_cast<const std::byte*>(std::as_const(weight).data()));
  weight(3, 6) = 4;
  EXPECT_EQ(weight.borrow().matrix(3, 6), 4);
  EXPECT_EQ(copy.stored()(3, 6), 603);
  EXPECT_EQ(copy.stored()(4, 0), 4);
}

TEST(Weight, MappedNumbersComeBackAfterTheyWereLetGo) {
  const test::ScratchFolder scratch;
  std::vector<float> numbers(61 * 53 * 7);  // several pages
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const auto path = scratch.path() / "x.safetensors";
  const std::vector<NamedTensor> tensors{{.name = "a", .shape = {61 * 7, 53}, .data = numbers}};
  write_file_atomically(path, write_safetensors(tensors, {}));
  const auto file = SafetensorsFile::open(path);
  const auto mapped = file.mapped("a");
  EXPECT_TRUE(mapped.in_file);
  const Weight weight({.data = mapped.data, .rows = 61 * 7, .cols = 53, .row_stride = 53}, mapped.keeper,
                      mapped.in_file);
  for (int again = 0; again < 2; ++again) {
    const BorrowedMatrix borrowed = weight.borrow();
    EXPECT_EQ(borrowed.matrix(0, 0), 0);
    EXPECT_EQ(borrowed.matrix(426, 52), 426 * 53 + 52);
  }
  EXPECT_FALSE(weight.is_own());
  EXPECT_EQ(weight.stored()(213, 5), 213 * 53 + 5);
}

}  // namespace
}  // namespace mh
