// Every geometry against its formula in double: outputs, and the gradient of every number that is learned.
#include <gtest/gtest.h>

#include <algorithm>

#include "multihead/nn/initialise.h"
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
  int d_out = 0;
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
  all.push_back({"rows that come out narrower", {.heads = 3, .d_key = 5, .d_value = 2}, 7, {}, 3});
  all.push_back({"rows that come out wider", {.heads = 2, .biases = Biases::kNone}, 4, {}, 11});
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
  using enum Sight;
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
  const HeadGeometry cosine = {
      .heads = 4, .d_key = 2, .key_heads = 2, .query_key_norm = QueryKeyNorm::kL2, .scale = 3.0f};
  const HeadGeometry difference = {
      .heads = 4, .d_key = 2, .d_value = 3, .key_heads = 2, .weights = HeadWeights::kDifferential};
  const HeadGeometry talking = {.heads = 3, .d_key = 2, .weights = HeadWeights::kTalking};
  add("normalised", cosine, 5);
  add("normalised rotary", cosine, 5, {kRotary, kBackward});
  add("normalised shaw", cosine, 5, {kShaw, kBoth});
  add("normalised slices", {.heads = 2, .input = HeadInput::slices(), .query_key_norm = QueryKeyNorm::kL2},
      6);
  add("normalised tied", {.heads = 2, .scores = Scores::kTied, .query_key_norm = QueryKeyNorm::kL2}, 6);
  add("differential groups", difference, 5);
  add("differential rotary", difference, 5, {kRotary, kBackward});
  add("differential alibi", difference, 5, {kAlibi, kBoth});
  add("differential t5", difference, 5, {kT5, kBackward});
  add("talking groups", {.heads = 4, .d_key = 2, .key_heads = 2, .weights = HeadWeights::kTalking}, 5);
  add("talking alibi", talking, 5, {kAlibi, kBoth});
  add("talking t5", talking, 5, {kT5, kBackward});
  add("talking shaw", talking, 5, {kShaw, kBackward});
  add("talking merged", {.heads = 2, .scores = Scores::kMerged, .weights = HeadWeights::kTalking}, 6);
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
        // They start at 0 or 1, which would hide them.
        if (name[1] == 'b' || name[1] == 'c' || name.starts_with(".mixing_of") || name == ".head_norm")
          normal(p, random, 0.5);
      });
    }
  }
  static MultiHeadAttentionConfig config(const test::Order& order) {
    return {.d_model = GetParam().d_model,
            .d_out = GetParam().d_out,
            .geometry = GetParam().geometry,
            .positions = order.positions,
            .sight = order.sight,
            .layer = test::kLayer};
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
  const bool both = order.positions != Positions::kNone && order.sight == Sight::kBoth;
  const Mask mask = both ? Mask::none() : Mask::causal();
  const auto formula = [&] {
    return test::layer_in_double(g, GetParam().d_model, p, x, ragged, x, ragged, mask, order);
  };

  Tape tape(Tape::Mode::kRecord);
  Context context{.tape = tape};
  const Var input = tape.constant(x_float.view(), Tape::Gradient::kWants);
  const Var y =
      output_of(context, layer,
                layer.self_heads(context, input, {.ids = {}, .ragged = &ragged, .sentences = {}}, mask));
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

struct Watcher final : Observer {
  bool wants_weights(std::string_view) const override { return true; }
  void weights(const ObservedWeights& observed) override {
    heads = observed.heads;
    for (int s = 0; s + 1 < static_cast<int>(observed.query_offsets.size()); ++s) {
      for (int h = 0; h < heads; ++h) maps.push_back(in_double(observed.matrix(s, h)));
    }
  }
  int heads = 0;
  std::vector<D> maps;  // of each sequence and head
};

TEST_P(Geometry, ObserversSeeWhatTheValuesAreWeighedWith) {
  const HeadGeometry& g = layer.geometry();
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{3, 1, 4});
  Tensor x = in_float(random_rows(ragged.rows(), 31));
  Tape tape;
  Watcher watcher;
  Context context{.tape = tape, .observer = &watcher};
  const Var input = tape.constant(x.view());
  const Var out =
      layer.self_heads(context, input, {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::causal());
  const Var v = layer.project(context, input, {.offsets = ragged.offsets()}).v;
  const Parameters p = test::parameters_of(layer);
  ASSERT_EQ(watcher.heads, g.heads);
  size_t next = 0;
  for (int32_t s = 0; s < ragged.sequences(); ++s) {
    for (int h = 0; h < g.heads; ++h) {
      const D& map = watcher.maps[next++];
      ASSERT_EQ(map.rows(), ragged.length(s));
      const int64_t first = int64_t{h} * g.value_heads / g.heads * g.d_value;
      D values(ragged.length(s), g.d_value);
      for (int64_t i = 0; i < map.rows(); ++i) {
        for (int c = 0; c < g.d_value; ++c) values(i, c) = v.value()(ragged.begin(s) + i, first + c);
      }
      D expected = test::product(map, values);
      if (g.weights == HeadWeights::kDifferential) {
        test::norm_of_differential_head(p, test::lambda_start(test::kLayer), expected);
      }
      for (int64_t i = 0; i < map.rows(); ++i) {
        for (int c = 0; c < g.d_value; ++c)
          ASSERT_NEAR(out.value()(ragged.begin(s) + i, int64_t{h} * g.d_value + c), expected(i, c), 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace mh
