// Heads that read parts of the row: slices, slices of a projected row, or any columns.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

/// Head i reads the columns c_i of x, or of x W. Their matrices stand below each other, or there is one for
/// all.
class SegmentOracle final : public HeadOracle {
 public:
  D query(const Layer& layer, const D& x, int head) const override {
    return read(layer, x, "q", head, layer.geometry.d_key);
  }
  D key(const Layer& layer, const D& memory, int head) const override {
    return read(layer, memory, "k", head, layer.geometry.d_key);
  }
  D value(const Layer& layer, const D& memory, int head) const override {
    return read(layer, memory, "v", head, layer.geometry.d_value);
  }
  Rows counted_queries(const HeadGeometry& g, const Rows& x, int) const override {
    return counted(g, x, g.d_key);
  }
  Rows counted_keys(const HeadGeometry& g, const Rows& memory, int, const Rows&) const override {
    return counted(g, memory, g.d_key);
  }
  Rows counted_values(const HeadGeometry& g, const Rows& memory) const override {
    return counted(g, memory, g.d_value);
  }

 private:
  static HeadColumns columns_of(const HeadGeometry& g, int d_model) {
    return g.input.kind == HeadInput::Kind::kColumns ? g.input.columns : slice_columns(g.heads, d_model);
  }
  static D read(const Layer& layer, const D& x, const std::string& letter, int head, int size) {
    const Parameters& p = layer.parameters;
    const D rows = p.contains("w_before_" + letter) ? product(x, p.at("w_before_" + letter)) : x;
    const HeadColumns columns = columns_of(layer.geometry, layer.d_model);
    int64_t first = 0;
    if (!layer.geometry.input.one_for_all) {
      for (int h = 0; h < head; ++h) first += static_cast<int64_t>(columns[static_cast<size_t>(h)].size());
    }
    const D& w = p.at("w_" + letter);
    D out(x.rows(), size);
    for (int64_t i = 0; i < x.rows(); ++i) {
      for (int64_t c = 0; c < size; ++c) {
        for (size_t n = 0; n < columns[static_cast<size_t>(head)].size(); ++n) {
          out(i, c) += rows(i, columns[static_cast<size_t>(head)][n]) * w(first + static_cast<int64_t>(n), c);
        }
      }
    }
    add_bias_of(p, "b_" + letter, int64_t{head} * size, out);
    return out;
  }
  static Rows counted(const HeadGeometry& g, Rows x, int size) {
    const auto tokens = static_cast<int64_t>(x.size()), d = static_cast<int64_t>(x[0].size());
    if (g.input.kind == HeadInput::Kind::kProjectedSlices) x = product(x, zeros(d, d));
    Rows out = zeros(tokens, 0);
    for (const auto& head : columns_of(g, static_cast<int>(d))) {
      Rows part = zeros(tokens, 0);
      for (size_t i = 0; i < x.size(); ++i) {
        for (const int32_t column : head) part[i].push_back(x[i][static_cast<size_t>(column)]);
      }
      const Rows one = product(part, zeros(static_cast<int64_t>(head.size()), size));
      for (size_t i = 0; i < x.size(); ++i) out[i].insert(out[i].end(), one[i].begin(), one[i].end());
    }
    if (g.biases != Biases::kNone) add_bias_to(out);
    return out;
  }
};
const SegmentOracle segments;
const Registered<HeadOracle, HeadInput::Kind> register_slices(HeadInput::Kind::kSlices, segments);
const Registered<HeadOracle, HeadInput::Kind> register_columns(HeadInput::Kind::kColumns, segments);
const Registered<HeadOracle, HeadInput::Kind> register_projected(HeadInput::Kind::kProjectedSlices, segments);

const HeadGeometry kUneven = {.heads = 3, .d_key = 3, .input = HeadInput::slices()};
const HeadGeometry kFourthForAll = {
    .heads = 2, .input = HeadInput::projected_slices(true), .biases = Biases::kNone};

INSTANTIATE_TEST_SUITE_P(
    Segments, Geometry,
    testing::Values(
        Case{"slices of uneven size", kUneven, 7},
        Case{"overlapping columns",
             {.heads = 2, .d_key = 3, .input = HeadInput::of_columns({{0, 2, 3, 4}, {2, 4, 6}})},
             7},
        Case{"permuted slices", {.heads = 2, .input = HeadInput::of_columns(permuted_slices(2, 6, 5))}, 6},
        Case{"fourth form, one for all", kFourthForAll, 6},
        Case{"shaw slices",
             {.heads = 2, .input = HeadInput::slices()},
             6,
             {Positions::kShaw, AttentionDirection::kCausal}}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(
    Segments, LedgerOf,
    testing::Values(Case{"slices of uneven size", kUneven, 7},
                    Case{"overlapping columns",
                         {.heads = 2, .d_key = 3, .input = HeadInput::of_columns({{0, 2, 3}, {2, 4}})},
                         7},
                    Case{"columns that stop early",
                         {.heads = 2, .d_key = 3, .input = HeadInput::of_columns({{0, 1}, {2}})},
                         7},
                    Case{"fourth form, one for all", kFourthForAll, 6}),
    name_of_case);

TEST(SegmentHeads, WhatCannotBe) {
  expect_problem({.heads = 2, .input = HeadInput::of_columns({{0, 1}, {7, 8}})}, 8,
                 "input.columns of head 1 is 7 8; expected rising numbers below d_model 8");
  expect_problem({.heads = 2, .input = HeadInput::of_columns({{0, 1}})}, 8,
                 "input.columns has 1 lists for 2 heads; give one a head");
  expect_problem(
      {.heads = 3, .d_key = 2, .input = HeadInput::slices(true)}, 8,
      "input.one_for_all needs slices of one size, but 3 heads do not divide d_model 8; use 1 heads");
  expect_problem(
      {.heads = 3,
       .d_key = 2,
       .input = HeadInput::slices(),
       .initialisation = HeadInitialisation::kEqualWithNoise},
      8, "heads that start equal must read equally many columns; use 1 heads, or another initialisation");
  expect_problem({.heads = 2,
                  .input = HeadInput::of_columns({{0, 1}, {2, 3, 4}}),
                  .initialisation = HeadInitialisation::kEqual},
                 8,
                 "heads that start equal must read equally many columns; give each as many, or use another "
                 "initialisation");
}

TEST(SegmentHeads, StartEqual) {
  using enum HeadInitialisation;
  const auto rows_of_heads = [](HeadInitialisation initialisation, HeadInput input) {
    DropoutStreams streams;
    MultiHeadAttention layer(
        "layer",
        {.d_model = 6, .geometry = {.heads = 3, .input = std::move(input), .initialisation = initialisation}},
        streams);
    Random random(3);
    layer.initialise(random);
    std::vector<D> heads;
    const Parameters p = parameters_of(layer);
    for (const char* name : {"w_q", "w_k", "w_v"}) {
      for (int h = 0; h < 3; ++h) heads.push_back(rows_of(p.at(name), 2 * h, 2 * h + 2));
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

}  // namespace
}  // namespace mh::test
