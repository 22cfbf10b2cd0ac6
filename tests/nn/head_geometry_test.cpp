// Descriptions of heads: which are refused, which columns heads read, and how matrices are initialised.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "tests/nn/geometries/suites.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using test::D;
using test::distance;
using test::Parameters;

TEST(GeometryProblems, NameTheFieldAndWhatWouldWork) {
  using test::expect_problem;
  expect_problem({.heads = 0}, 8, "heads is 0; expected at least 1");
  expect_problem({.heads = 3}, 8, "heads is 3, which does not divide d_model 8; set d_key, for example to 2");
  expect_problem({.heads = 2, .d_key = -1, .d_value = 2}, 8, "d_key is -1; expected 1 ... 1024");
  expect_problem({.heads = 4, .key_heads = 3}, 8,
                 "key_heads is 3; expected a divisor of the 4 heads, for example 1");
  expect_problem({.heads = 2, .d_value = 3, .output = HeadOutput::kConcatenation}, 8,
                 "output is the concatenation of 2 heads of 3, not d_model 8; use a projection or d_value 4");
  expect_problem({.heads = 2, .input = {.one_for_all = true}}, 8,
                 "input.one_for_all would make all heads that read the whole row the same; use slices");
  expect_problem({.heads = 2, .shared_size = 3}, 8,
                 "shared_size needs collaborative scores; set it to 0 or scores to collaborative");
  EXPECT_THROW(geometry_preset("narrow", 2, 8), UsageError);
}

TEST(GeometryProblems, AreAllListed) {
  const auto found = problems_of({.heads = 2,
                                  .d_key = 2000,
                                  .key_heads = 1,
                                  .input = HeadInput::slices(),
                                  .scores = Scores::kTied,
                                  .shared_size = 5},
                                 8);
  EXPECT_EQ(found.size(), 5u) << testing::PrintToString(
      found);  // d_key, d_value, shared keys, scores, shared_size
}

/// The rows of docs/geometries.md: they come from the lists.
std::vector<std::string> rows_of_page() {
  std::vector<std::string> rows;
  for (const GeometryName& name : geometry_names())
    rows.push_back(fmt::format("| `{}` | {} |", name.name, name.what));
  const HeadGeometry geometry;
  HeadGeometry::describe(geometry, [&](const HeadField& field, const auto&, auto... names) {
    std::string row = fmt::format("| `{}` | {}", field.name, field.help);
    [[maybe_unused]] const auto add_names = [&](const auto& table) {
      const char* before = ": ";
      for (const auto& [name, value] : table) row += fmt::format("{}`{}`", std::exchange(before, ", "), name);
    };
    (add_names(names), ...);
    if (field.only) row += fmt::format(" (of `{}`)", name_of(*field.only, kScoresNames));
    rows.push_back(row + " |");
  });
  return rows;
}

TEST(GeometryPage, HasEveryGeometryAndField) {
  std::ifstream file(source_folder() + "/docs/geometries.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const std::string& row : rows_of_page())
    EXPECT_NE(page.find(row + "\n"), std::string::npos) << "docs/geometries.md lacks the row\n" << row;
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
  DropoutStreams streams;
  MultiHeadAttention layer(
      "layer", {.d_model = 9, .geometry = {.heads = 3, .initialisation = initialisation}}, streams);
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

}  // namespace
}  // namespace mh
