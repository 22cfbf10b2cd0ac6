// Geometries: which of them cannot be, which columns heads read, and how their matrices start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/nn/layer_in_double.h"

namespace mh {
namespace {

using test::D;
using test::Parameters;

TEST(GeometryProblems, NameTheFieldAndWhatWouldWork) {
  const auto expect = [](const HeadGeometry& geometry, int d_model, const char* text) {
    const auto found = problems(geometry, d_model);
    ASSERT_EQ(found.size(), 1u) << testing::PrintToString(found);
    EXPECT_EQ(found[0], text);
  };
  expect({.heads = 0}, 8, "heads is 0; expected at least 1");
  expect({.heads = 3}, 8, "heads is 3, which does not divide d_model 8; set d_key, for example to 2");
  expect({.heads = 2, .d_key = -1, .d_value = 2}, 8, "d_key is -1; expected 1 ... 1024");
  expect({.heads = 4, .key_heads = 3}, 8, "key_heads is 3; expected a divisor of the 4 heads, for example 1");
  expect({.heads = 2, .input = HeadInput::of_columns({{0, 1}, {7, 8}})}, 8,
         "input.columns of head 1 is 7 8; expected rising numbers below d_model 8");
  expect({.heads = 2, .input = HeadInput::of_columns({{0, 1}})}, 8,
         "input.columns has 1 lists for 2 heads; give one a head");
  expect({.heads = 4, .key_heads = 2, .scores = Scores::kMerged}, 8,
         "merged scores already share their keys; set key_heads and value_heads to 0");
  expect({.heads = 2, .d_value = 3, .output = HeadOutput::kConcatenation}, 8,
         "output is the concatenation of 2 heads of 3, not d_model 8; use a projection or d_value 4");
  expect({.heads = 3, .d_key = 2, .input = HeadInput::slices(true)}, 8,
         "input.one_for_all needs slices of one size, but 3 heads do not divide d_model 8; use 1 heads");
  expect(
      {.heads = 2, .scores = Scores::kMerged, .query_key_norm = QueryKeyNorm::kL2}, 8,
      "query_key_norm scales queries and keys, of which merged scores have none of their own; set scores to "
      "query_key");
  expect(
      {.heads = 2, .input = HeadInput::slices(), .weights = HeadWeights::kDifferential}, 8,
      "differential weights need two queries and two keys a head, of the whole row; set input to whole_row "
      "and scores to query_key");
  expect({.heads = 2, .weights = HeadWeights::kDifferential}, 6,
         "heads is 2, twice which does not divide d_model 6; set d_key, for example to 1");
  expect({.heads = 3,
          .d_key = 2,
          .input = HeadInput::slices(),
          .initialisation = HeadInitialisation::kEqualWithNoise},
         8, "heads that start equal must read equally many columns; use 1 heads, or another initialisation");
  expect({.heads = 2,
          .input = HeadInput::of_columns({{0, 1}, {2, 3, 4}}),
          .initialisation = HeadInitialisation::kEqual},
         8,
         "heads that start equal must read equally many columns; give each as many, or use another "
         "initialisation");
  EXPECT_THROW(geometry_preset("narrow", 2, 8), UsageError);
}

TEST(GeometryColumns, SlicesAndSegmentsCoverWhatTheySay) {
  EXPECT_EQ(slice_columns(3, 7), (HeadColumns{{0, 1}, {2, 3}, {4, 5, 6}}));
  EXPECT_EQ(spread_segments(3, 4, 8), (HeadColumns{{0, 1, 2, 3}, {2, 3, 4, 5}, {4, 5, 6, 7}}));
  std::vector<int32_t> all;
  for (const auto& head : permuted_slices(3, 11, 4)) all.insert(all.end(), head.begin(), head.end());
  EXPECT_THAT(all, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_NE(permuted_slices(3, 11, 4), slice_columns(3, 11));
  for (const auto& head : random_columns(5, 4, 11, 2)) {
    EXPECT_EQ(head.size(), 4u);
    EXPECT_TRUE(std::is_sorted(head.begin(), head.end()));
    EXPECT_EQ(std::adjacent_find(head.begin(), head.end()), head.end());
  }
}

/// What the layer's heads start with, side by side.
std::vector<D> head_matrices(HeadInitialisation initialisation) {
  DropoutSites sites;
  MultiHeadAttention layer("layer",
                           {.d_model = 9, .geometry = {.heads = 3, .initialisation = initialisation}}, sites);
  Random random(3);
  layer.initialise(random);
  const Parameters p = test::parameters_of(layer);
  std::vector<D> matrices;
  for (int h = 0; h < 3; ++h) matrices.push_back(test::columns_of(p.at("w_q"), h * 3, h * 3 + 3));
  D first(3, 9), second(3, 9);
  for (int64_t i = 0; i < 27; ++i) {
    first.data()[i] = p.at("w_o").data()[i];
    second.data()[i] = p.at("w_o").data()[27 + i];
  }
  matrices.push_back(std::move(first));
  matrices.push_back(std::move(second));
  return matrices;
}

double distance(const D& a, const D& b) {
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a.data()[i] - b.data()[i]));
  return most;
}

TEST(HeadInitialisations, AreWhatTheyAreCalled) {
  using enum HeadInitialisation;
  const auto xavier = head_matrices(kXavier), equal = head_matrices(kEqual),
             input = head_matrices(kEqualInput);
  const auto noise = head_matrices(kEqualWithNoise), orthogonal = head_matrices(kOrthogonal);
  EXPECT_GT(distance(xavier[0], xavier[1]), 0.01);
  EXPECT_EQ(distance(equal[0], equal[2]), 0);
  EXPECT_EQ(distance(equal[3], equal[4]), 0);
  EXPECT_EQ(distance(input[0], input[2]), 0);
  EXPECT_GT(distance(input[3], input[4]), 0.01);
  EXPECT_GT(distance(noise[0], noise[2]), 0);
  EXPECT_LT(distance(noise[0], noise[2]), 1e-5);
  for (int64_t a = 0; a < 3; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      double dot = 0;
      for (int64_t n = 0; n < 9; ++n) dot += orthogonal[1](n, a) * orthogonal[1](n, b);
      EXPECT_NEAR(dot, a == b ? 1 : 0, 1e-6);
    }
  }
}

TEST(HeadInitialisations, MakeSegmentsEqualToo) {
  using enum HeadInitialisation;
  const auto rows_of_heads = [](HeadInitialisation initialisation, HeadInput input) {
    DropoutSites sites;
    MultiHeadAttention layer(
        "layer",
        {.d_model = 6, .geometry = {.heads = 3, .input = std::move(input), .initialisation = initialisation}},
        sites);
    Random random(3);
    layer.initialise(random);
    std::vector<D> heads;
    const Parameters p = test::parameters_of(layer);
    for (const char* name : {"w_q", "w_k", "w_v"}) {
      for (int h = 0; h < 3; ++h) heads.push_back(test::rows_of(p.at(name), 2 * h, 2 * h + 2));
    }
    return heads;
  };
  for (const HeadInput& input : {HeadInput::slices(), HeadInput::projected_slices(),
                                 HeadInput::of_columns({{0, 3}, {1, 2}, {1, 5}})}) {
    const auto equal = rows_of_heads(kEqual, input), noise = rows_of_heads(kEqualWithNoise, input);
    EXPECT_GT(distance(rows_of_heads(kXavier, input)[0], rows_of_heads(kXavier, input)[1]), 0.01);
    for (size_t first = 0; first < equal.size(); first += 3) {
      EXPECT_EQ(distance(equal[first], equal[first + 2]), 0);
      EXPECT_GT(distance(noise[first], noise[first + 2]), 0);
      EXPECT_LT(distance(noise[first], noise[first + 2]), 1e-5);
    }
    EXPECT_GT(distance(equal[0], equal[3]), 0.01);  // queries are no keys
  }
}

TEST(HeadInitialisations, CopiedKeysAreTheQueries) {
  DropoutSites sites;
  MultiHeadAttention layer("layer", {.d_model = 8, .geometry = geometry_preset("aggcn", 2, 8)}, sites);
  Random random(3);
  layer.initialise(random);
  const Parameters p = test::parameters_of(layer);
  EXPECT_EQ(distance(p.at("w_q"), p.at("w_k")), 0);
  EXPECT_GT(distance(p.at("w_q"), p.at("w_v")), 0.01);
}

}  // namespace
}  // namespace mh
