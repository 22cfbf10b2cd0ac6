#include "multihead/models/sentence_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/models/sentence_model.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

using testing::ElementsAre;

TEST(PoolStates, AreTheirFormulas) {
  const std::vector<float> numbers{1, -2, 3, 4, -5, 6, 7, 8, 9, 0};  // rows of 2; sequences of 3, 0 and 2
  const std::vector<int32_t> lengths{3, 0, 2};
  const Ragged ragged = Ragged::from_lengths(lengths);
  const ConstMatrixView states(numbers.data(), 5, 2);
  const auto pooled = [&](Pooling mode) {
    Tensor vectors(3, 2);
    pool_states(states, ragged, {&mode, 1}, vectors.view());
    return std::vector<float>(vectors.data(), vectors.data() + 6);
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
  Tensor wrong(2, 2);
  const Pooling mean = Pooling::kMean;
  EXPECT_THROW(pool_states(states, ragged, {&mean, 1}, wrong.view()), ShapeError);
}

TEST(NormaliseRows, LeavesZerosAlone) {
  Tensor rows(2, 2);
  rows(0, 0) = 3, rows(0, 1) = -4;
  normalise_rows(rows.view());
  EXPECT_FLOAT_EQ(rows(0, 0), 0.6f);
  EXPECT_FLOAT_EQ(rows(0, 1), -0.8f);
  EXPECT_EQ(rows(1, 0), 0);
  EXPECT_EQ(rows(1, 1), 0);
}

}  // namespace
}  // namespace mh
