#include <gmock/gmock.h>

#include <limits>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/base/ragged.h"

namespace mh {
namespace {

using testing::ElementsAre;

TEST(Ragged, KeepsWhereSequencesBegin) {
  const std::vector<int32_t> lengths{3, 0, 5, 1};
  const Ragged ragged = Ragged::from_lengths(lengths);
  EXPECT_THAT(ragged.offsets(), ElementsAre(0, 3, 3, 8, 9));
  EXPECT_EQ(ragged.sequences(), 4);
  EXPECT_EQ(ragged.rows(), 9);
  EXPECT_EQ(ragged.begin(2), 3);
  EXPECT_EQ(ragged.end(2), 8);
  EXPECT_EQ(ragged.longest(), 5);
  for (int32_t s = 0; s < 4; ++s) EXPECT_EQ(ragged.length(s), lengths[static_cast<size_t>(s)]);
}

TEST(Ragged, GrowsAndClears) {
  Ragged ragged;
  EXPECT_EQ(ragged.sequences(), 0);
  EXPECT_EQ(ragged.rows(), 0);
  EXPECT_EQ(ragged.longest(), 0);
  ragged.add(2);
  ragged.add(7);
  EXPECT_EQ(ragged, Ragged::from_lengths(std::vector<int32_t>{2, 7}));
  EXPECT_NE(ragged, Ragged::from_lengths(std::vector<int32_t>{7, 2}));
  ragged.clear();
  EXPECT_EQ(ragged, Ragged());
}

TEST(Ragged, RefusesLengthsThatCannotBe) {
  Ragged ragged;
  EXPECT_THROW(ragged.add(-1), ShapeError);
  ragged.add(std::numeric_limits<int32_t>::max());
  EXPECT_THROW(ragged.add(1), ShapeError);
}

TEST(MatrixView, RowsAndColumnsOfOthers) {
  std::vector<float> numbers(3 * 7);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const MatrixView all(numbers.data(), 3, 5, 7);  // 3 x 5, rows 7 apart
  EXPECT_EQ(all(2, 4), 18);
  EXPECT_FALSE(all.contiguous());
  EXPECT_EQ(all.size(), 15);
  const ConstMatrixView part = all.rows_between(1, 3).columns_between(2, 5);
  EXPECT_EQ(part.rows, 2);
  EXPECT_EQ(part.cols, 3);
  EXPECT_EQ(part(1, 0), 16);
  EXPECT_EQ(part.row(0), numbers.data() + 9);
  EXPECT_TRUE(part.rows_between(0, 1).contiguous());
  EXPECT_TRUE(all.rows_between(1, 1).empty());
  EXPECT_TRUE(MatrixView().empty());
}

TEST(MatrixView, RefusesRowsThatAreNotThere) {
  std::vector<float> numbers(6);
  const MatrixView view(numbers.data(), 2, 3);
  EXPECT_THROW(view.rows_between(1, 3), ShapeError);
  EXPECT_THROW(view.columns_between(2, 1), ShapeError);
}

}  // namespace
}  // namespace mh
