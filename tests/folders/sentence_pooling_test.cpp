#include "multihead/folders/sentence_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

using testing::ElementsAre;

TEST(PoolStates, AreTheirFormulas) {
  std::vector<float> numbers{1, -2, 3, 4, -5, 6, 7, 8, 9, 0};  // rows of 2; sequences of 3, 0 and 2
  const std::vector<int32_t> lengths{3, 0, 2};
  const Ragged ragged = Ragged::from_lengths(lengths);
  const MatrixView states(numbers.data(), 5, 2);
  const auto pooled = [&](Pooling mode) {
    Tape tape;
    const MatrixView vectors = pool_states(tape, tape.constant(states), ragged, {&mode, 1}).value();
    return std::vector<float>(vectors.data, vectors.data + 6);
  };
  const auto f = [](double x) { return testing::FloatEq(static_cast<float>(x)); };
  EXPECT_THAT(pooled(Pooling::kFirst), ElementsAre(1, -2, 0, 0, 7, 8));
  EXPECT_THAT(pooled(Pooling::kLast), ElementsAre(-5, 6, 0, 0, 9, 0));
  EXPECT_THAT(pooled(Pooling::kMax), ElementsAre(3, 6, 0, 0, 9, 8));
  EXPECT_THAT(pooled(Pooling::kMean), ElementsAre(f(-1 / 3.0), f(8 / 3.0), 0, 0, 8, 4));
  EXPECT_THAT(pooled(Pooling::kMeanSqrtLength), ElementsAre(f(-1 / std::sqrt(3)), f(8 / std::sqrt(3)), 0, 0,
                                                            f(16 / std::sqrt(2)), f(8 / std::sqrt(2))));
  EXPECT_THAT(pooled(Pooling::kWeightedMean), ElementsAre(f((1 + 6 - 15) / 6.0), f((-2 + 8 + 18) / 6.0), 0, 0,
                                                          f((7 + 18) / 3.0), f(8 / 3.0)));
  const Pooling modes[] = {Pooling::kMax, Pooling::kLast};
  Tape tape;
  const MatrixView both = pool_states(tape, tape.constant(states), ragged, modes).value();
  EXPECT_THAT(std::vector<float>(both.row(2), both.row(2) + 4), ElementsAre(9, 8, 9, 0));
  EXPECT_THROW(pool_states(tape, tape.constant(states.rows_between(0, 4)), ragged, modes), ShapeError);
}

// As sentence-transformers leaves out a prompt: the rows behind it keep their places, and where none is left the first counts
// as the first.
TEST(PoolStates, LeaveOutTheFirstRows) {
  std::vector<float> numbers{1, -2, 3, 4, -5, 6, 7, 8, 9, 0, -1, 2};  // rows of 2; sequences of 3, 1 and 2
  const std::vector<int32_t> lengths{3, 1, 2};
  const Ragged ragged = Ragged::from_lengths(lengths);
  const MatrixView states(numbers.data(), 6, 2);
  const auto pooled = [&](Pooling mode, int32_t left_out) {
    Tape tape;
    const MatrixView vectors = pool_states(tape, tape.constant(states), ragged, {&mode, 1}, left_out).value();
    return std::vector<float>(vectors.data, vectors.data + 6);
  };
  const auto f = [](double x) { return testing::FloatEq(static_cast<float>(x)); };
  EXPECT_THAT(pooled(Pooling::kFirst, 1), ElementsAre(3, 4, 7, 8, -1, 2));
  EXPECT_THAT(pooled(Pooling::kLast, 1), ElementsAre(-5, 6, 0, 0, -1, 2));
  EXPECT_THAT(pooled(Pooling::kMax, 1), ElementsAre(3, 6, 0, 0, -1, 2));
  EXPECT_THAT(pooled(Pooling::kMean, 1), ElementsAre(-1, 5, 0, 0, -1, 2));
  EXPECT_THAT(pooled(Pooling::kMeanSqrtLength, 1),
              ElementsAre(f(-2 / std::sqrt(2)), f(10 / std::sqrt(2)), 0, 0, -1, 2));
  EXPECT_THAT(pooled(Pooling::kWeightedMean, 1),
              ElementsAre(f((6 - 15) / 5.0), f((8 + 18) / 5.0), 0, 0, -1, 2));
  for (const Pooling mode : {Pooling::kLast, Pooling::kMax, Pooling::kMean, Pooling::kWeightedMean})
    EXPECT_THAT(pooled(mode, 3), testing::Each(0.0f));
  EXPECT_THAT(pooled(Pooling::kFirst, 3), ElementsAre(1, -2, 7, 8, 9, 0));
}

}  // namespace
}  // namespace mh
