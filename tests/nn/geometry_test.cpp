// Every geometry against its formula in double: outputs, and the gradient of every number that is learned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/nn/layer_in_double.h"

namespace mh {
namespace {

using test::D;
using test::Parameters;

struct Case {
  std::string name;
  HeadGeometry geometry;
  int d_model;
  test::Order order = {};
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const GeometryName& named : geometry_names()) {
    all.push_back({std::string(named.name), geometry_preset(named.name, 2, 6), 6, {}});
  }
  const auto add = [&](const char* name, HeadGeometry geometry, int d_model, test::Order order = {}) {
    all.push_back({name, std::move(geometry), d_model, order});
  };
  add("sizes that differ", {.heads = 3, .d_key = 5, .d_value = 2}, 7);
  add("groups of keys and of values",
      {.heads = 6, .d_key = 3, .d_value = 2, .key_heads = 3, .value_heads = 2}, 5);
  add("slices of uneven size", {.heads = 3, .d_key = 3, .input = HeadInput::slices()}, 7);
  add("overlapping columns",
      {.heads = 2, .d_key = 3, .input = HeadInput::of_columns({{0, 2, 3, 4}, {2, 4, 6}})}, 7);
  add("permuted slices", {.heads = 2, .input = HeadInput::of_columns(permuted_slices(2, 6, 5))}, 6);
  add("fourth form, one for all",
      {.heads = 2, .input = HeadInput::projected_slices(true), .biases = Biases::kNone}, 6);
  add("collaborative of another size",
      {.heads = 2, .d_key = 2, .scores = Scores::kCollaborative, .shared_size = 5}, 4);
  add("merged, no biases", {.heads = 2, .d_key = 2, .scores = Scores::kMerged, .biases = Biases::kNone}, 5);
  add("doubled groups", {.heads = 2, .key_heads = 1, .scores = Scores::kDoubled, .scale = 0.3f}, 4);

  using enum Positions;
  using enum Direction;
  const HeadGeometry groups = {.heads = 4, .d_key = 6, .d_value = 3, .key_heads = 2};
  const HeadGeometry three = {.heads = 3, .d_key = 2};
  const HeadGeometry collaborative = {
      .heads = 2, .d_key = 2, .scores = Scores::kCollaborative, .shared_size = 6};
  add("rotary", groups, 5, {kRotary, kBackward});
  add("rotary tied", {.heads = 2, .d_key = 4, .scores = Scores::kTied}, 5, {kRotary, kBoth});
  add("rotary collaborative", collaborative, 5, {kRotary, kBackward});
  add("alibi", three, 5, {kAlibi, kBackward});
  add("alibi both ways", groups, 5, {kAlibi, kBoth});
  add("t5", three, 5, {kT5, kBackward});
  add("t5 both ways", groups, 5, {kT5, kBoth});
  add("t5 merged", {.heads = 2, .d_key = 2, .scores = Scores::kMerged}, 5, {kT5, kBackward});
  add("shaw", three, 5, {kShaw, kBackward});
  add("shaw both ways", groups, 5, {kShaw, kBoth});
  add("shaw collaborative", collaborative, 5, {kShaw, kBoth});
  add("shaw slices", {.heads = 2, .input = HeadInput::slices()}, 6, {kShaw, kBackward});
  return all;
}

class Geometry : public testing::TestWithParam<Case> {
 protected:
  Geometry() : layer("layer", config(GetParam().order), sites), crossing("crossing", config({}), sites) {
    Random random(7);
    for (MultiHeadAttention* one : {&layer, &crossing}) {
      one->initialise(random);
      one->visit("", [&](const std::string& name, Parameter& p) {
        if (name[1] == 'b' || name[1] == 'c')
          normal(p, random, 0.5);  // they start at 0, which would hide them
      });
    }
  }
  static MultiHeadAttentionConfig config(const test::Order& order) {
    return {.d_model = GetParam().d_model,
            .geometry = GetParam().geometry,
            .positions = order.positions,
            .direction = order.direction};
  }
  static D random_rows(int64_t rows, uint64_t seed) {
    Random random(seed);
    D x(rows, GetParam().d_model);
    for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
    return x;
  }
  static Tensor in_float(const D& from) {
    Tensor to(from.rows(), from.cols());
    for (int64_t i = 0; i < from.size(); ++i) to.data()[i] = static_cast<float>(from.data()[i]);
    return to;
  }
  static Var output_of(Context& context, MultiHeadAttention& layer, Var heads) {
    return layer.output() != nullptr ? affine(context.tape, heads, *layer.output()) : heads;
  }

  DropoutSites sites;
  MultiHeadAttention layer;     // attends to itself
  MultiHeadAttention crossing;  // to a memory, where there are no positions
};

/// loss = sum(output * seed); every gradient against (loss(+step) - loss(-step)) / (2 step) of the formula.
void check_gradient(const std::string& what, MatrixView found, D& numbers,
                    const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < numbers.size(); ++i) {
    const double kept = numbers.data()[i];
    numbers.data()[i] = kept + kStep;
    const double above = loss();
    numbers.data()[i] = kept - kStep;
    const double below = loss();
    numbers.data()[i] = kept;
    const double slope = (above - below) / (2 * kStep);
    ASSERT_NEAR(found(i / numbers.cols(), i % numbers.cols()), slope, 2e-4 * (1 + std::abs(slope)))
        << what << " number " << i;
  }
}

TEST_P(Geometry, SelfAttentionIsTheFormulaAndItsGradient) {
  const HeadGeometry& g = layer.geometry();
  const test::Order order = GetParam().order;
  // Beyond T5's exact buckets and Shaw's clip.
  const int32_t longest = order.positions == Positions::kNone ? 5 : 19;
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{3, 1, longest});
  D x = random_rows(ragged.rows(), 11);
  Tensor x_float = in_float(x);
  Parameters p = test::parameters_of(layer);
  const bool both = order.positions != Positions::kNone && order.direction == Direction::kBoth;
  const Mask mask = both ? Mask::none() : Mask::causal();
  const auto formula = [&] {
    return test::layer_in_double(g, GetParam().d_model, p, x, ragged, x, ragged, mask, order);
  };

  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape};
  const Var input = tape.constant(x_float.view(), Tape::Gradient::kWants);
  const Var y = output_of(context, layer,
                          layer.self(context, input, {.ids = {}, .ragged = &ragged, .sentences = {}}, mask));
  const D expected = formula();
  ASSERT_EQ(y.rows(), expected.rows());
  ASSERT_EQ(y.cols(), expected.cols());
  for (int64_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(y.value()(i / y.cols(), i % y.cols()), expected.data()[i], 2e-5) << "number " << i;
  }

  const D seed = [&] {
    Random random(3);
    D numbers(expected.rows(), expected.cols());
    for (int64_t i = 0; i < numbers.size(); ++i) numbers.data()[i] = static_cast<float>(random.normal());
    return numbers;
  }();
  tape.seed(y, in_float(seed).view());
  tape.backward();
  const auto loss = [&] {
    const D out = formula();
    double sum = 0;
    for (int64_t i = 0; i < out.size(); ++i) sum += out.data()[i] * seed.data()[i];
    return sum;
  };
  check_gradient("input", tape.gradient_of(input).gradient, x, loss);
  layer.visit("", [&](const std::string& name, Parameter& parameter) {
    check_gradient(name, parameter.gradient_sum(), p.at(name.substr(1)), loss);
  });
}

TEST_P(Geometry, AttentionToAMemoryIsTheFormula) {
  const HeadGeometry& g = crossing.geometry();
  const Ragged queries = Ragged::from_lengths(std::vector<int32_t>{2, 3});
  const Ragged keys = Ragged::from_lengths(std::vector<int32_t>{5, 1});
  const D x = random_rows(queries.rows(), 21), memory = random_rows(keys.rows(), 22);
  Tensor x_float = in_float(x), memory_float = in_float(memory);
  Tape tape;
  Context context{.tape = tape};
  const KeysAndValues ready =
      crossing.project_memory(context, tape.constant(memory_float.view()), keys.offsets());
  EXPECT_EQ(ready.keys.cols(), crossing.key_width());
  EXPECT_EQ(ready.values.cols(), crossing.value_width());
  const Var q = crossing.project_queries(context, tape.constant(x_float.view()));
  const Sequences rows{.ids = {}, .ragged = &queries, .sentences = {}};
  const Var y = output_of(context, crossing, crossing.attend(context, q, rows, ready, Mask::none()));
  const D expected = test::layer_in_double(g, GetParam().d_model, test::parameters_of(crossing), x, queries,
                                           memory, keys, Mask::none());
  for (int64_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(y.value()(i / y.cols(), i % y.cols()), expected.data()[i], 2e-5) << "number " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Geometry, testing::ValuesIn(cases()), [](const auto& of) {
  std::string name = of.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

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
