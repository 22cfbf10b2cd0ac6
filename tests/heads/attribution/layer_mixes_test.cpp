// Products of layers beside hand calculations on three tokens.
#include "multihead/heads/attribution/layer_mixes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mh {
namespace {

DoubleMatrix matrix_of(const std::vector<std::vector<double>>& rows) {
  DoubleMatrix found(std::ssize(rows), std::ssize(rows[0]));
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < rows[i].size(); ++j)
      found(static_cast<int64_t>(i), static_cast<int64_t>(j)) = rows[i][j];
  return found;
}

void expect_row(const DoubleMatrix& found, int64_t row, const std::vector<double>& expected) {
  ASSERT_EQ(found.cols(), std::ssize(expected));
  for (int64_t j = 0; j < found.cols(); ++j)
    EXPECT_NEAR(found(row, j), expected[static_cast<size_t>(j)], 1e-15) << "column " << j;
}

/// Three tokens, each of which looks back: the first layer at all alike, the second at the token before.
LayerMixes looking_back() {
  LayerMixes mixes;
  mixes.decoder.push_back({.self = matrix_of({{1, 0, 0}, {0.5, 0.5, 0}, {0.25, 0.25, 0.5}})});
  mixes.decoder.push_back({.self = matrix_of({{1, 0, 0}, {1, 0, 0}, {0, 1, 0}})});
  return mixes;
}

TEST(Rollout, IsTheProductOfHalfIdentityAndHalfWeights) {
  // Layer 0: (1 0 0), (1/4 3/4 0), (1/8 1/8 3/4). Layer 1 of token 2: half of row 2 and half of row 1.
  const DoubleMatrix found = rollout(looking_back(), Sublayers::kInTurn);
  expect_row(found, 0, {1, 0, 0});
  expect_row(found, 1, {0.625, 0.375, 0});
  expect_row(found, 2, {0.1875, 0.4375, 0.375});
}

TEST(Rollout, WithoutResidualIsTheProductOfTheLayers) {
  const DoubleMatrix found = rollout(looking_back(), Sublayers::kTogether);
  expect_row(found, 2, {0.5, 0.5, 0});
}

LayerMixes translating() {
  LayerMixes mixes;
  mixes.encoder.push_back({.self = matrix_of({{0, 1, 0}, {0, 0, 1}, {1, 0, 0}})});
  mixes.decoder.push_back(
      {.self = matrix_of({{1, 0}, {0.5, 0.5}}), .cross = matrix_of({{1, 0, 0}, {0, 0.5, 0.5}})});
  return mixes;
}

TEST(Rollout, OfATranslatorGoesOnWithTheEncodersProduct) {
  // The encoder's rows: (1/2 1/2 0), (0 1/2 1/2), (1/2 0 1/2). Self: (1 0), (1/4 3/4); then half of it, and half of cross.
  const DoubleMatrix found = rollout(translating(), Sublayers::kInTurn);
  expect_row(found, 0, {0.25, 0.25, 0, 0.5, 0});
  expect_row(found, 1, {0.125, 0.125, 0.25, 0.125, 0.375});
}

TEST(Rollout, TogetherTakesSelfAndCrossOfALayerAsOneFactor) {
  LayerMixes mixes = translating();
  mixes.decoder[0] = {.self = matrix_of({{0.5, 0}, {0.25, 0.25}}),
                      .cross = matrix_of({{0.5, 0, 0}, {0, 0.25, 0.25}})};
  const DoubleMatrix found = rollout(mixes, Sublayers::kTogether);
  expect_row(found, 0, {0, 0.5, 0, 0.5, 0});
  expect_row(found, 1, {0.25, 0, 0.25, 0.25, 0.25});
}

TEST(Relevance, AddsWhatEachLayerBrings) {
  // R after layer 0: I + A_0; after layer 1, of token 2: row 2 and row 1 of that.
  const DoubleMatrix found = relevance(looking_back());
  expect_row(found, 2, {0.75, 1.75, 1.5});
}

TEST(Relevance, OfATranslatorFollowsEquations8To10) {
  // R_ss = I + A, so that R_ss - I has rows that sum to 1 already: R'_ss = R_ss. R_tt = I + A = (2 0), (1/2 3/2);
  // R_tt - I = (1 0), (1/2 1/2) sums to 1, too: R'_tt = R_tt. R_ts = R'_tt^T C R'_ss with
  // C R'_ss = (1 1 0), (1/2 1/2 1): row 0 is 2 (1 1 0) + 1/2 (1/2 1/2 1), row 1 is 3/2 (1/2 1/2 1).
  const DoubleMatrix found = relevance(translating());
  expect_row(found, 0, {2.25, 2.25, 0.5, 2, 0});
  expect_row(found, 1, {0.75, 0.75, 1.5, 0.5, 1.5});
}

TEST(Relevance, DividesByTheSumsOfRowsOnlyWhereThereIsSomething) {
  LayerMixes mixes = translating();
  mixes.encoder[0].self = matrix_of({{0, 4, 0}, {0, 0, 0}, {3, 0, 1}});
  const DoubleMatrix found = relevance(mixes);
  // R'_ss: (1 1 0), (0 1 0), (3/4 0 5/4). C R'_ss: (1 1 0), (3/8 1/2 5/8).
  expect_row(found, 1, {1.5 * 0.375, 1.5 * 0.5, 1.5 * 0.625, 0.5, 1.5});
}

TEST(LastLayer, HasCrossAttentionForTheSourceAndSelfAttentionForTheTarget) {
  const std::vector<double> found = last_layer(translating(), {0, 1});
  EXPECT_EQ(found, (std::vector<double>{0, 0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(last_layer(looking_back(), {0, 0, 1}), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(last_layer(looking_back(), {0.5, 0, 0.5}), (std::vector<double>{0.5, 0.5, 0}));
}

}  // namespace
}  // namespace mh
