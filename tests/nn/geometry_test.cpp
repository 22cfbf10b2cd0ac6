// Every geometry equals its formula in double: outputs, and the gradients of all parameters.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "multihead/heads/sites/site_values.h"
#include "multihead/nn/attention_positions.h"
#include "multihead/nn/heads.h"
#include "tests/nn/geometries/suites.h"

namespace mh {
namespace {

using test::D;
using test::Parameters;

using test::Case;
using test::Geometry;

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
  const bool both =
      order.positions != Positions::kNone && order.direction == AttentionDirection::kBidirectional;
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

TEST_P(Geometry, FrozenParametersLeaveTheGradientOfTheInput) {
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{3, 1, 7});
  Tensor x = in_float(random_rows(ragged.rows(), 12));
  const auto gradient = [&](Tape::Mode mode) {
    Tape tape(mode);
    Context context{.tape = tape};
    const Tape::Watched in = tape.watch(tape.constant(x.view()));
    const Var y = output_of(
        context, layer,
        layer.self_heads(context, in.value, {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::causal()));
    Tensor seed(y.rows(), y.cols());
    Random random(13);
    for (int64_t i = 0; i < seed.size(); ++i) seed.data()[i] = static_cast<float>(random.normal());
    tape.seed(y, seed.view());
    tape.backward();
    return std::vector<float>(in.gradient.data, in.gradient.data + in.gradient.size());
  };
  const std::vector<float> found = gradient(Tape::Mode::kRecordValues);
  layer.visit("", [](const std::string& name, const Parameter& parameter) {
    EXPECT_FALSE(parameter.gradient.exists()) << name;
  });
  EXPECT_EQ(found, gradient(Tape::Mode::kRecord));
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
  const Var q =
      crossing.project_queries(context, tape.constant(x_float.view()), {.offsets = queries.offsets()});
  const Sequences rows{.ids = {}, .ragged = &queries, .sentences = {}};
  const Var y =
      output_of(context, crossing,
                crossing.attend(context, q, rows, ready, Mask::none(), {.offsets = queries.offsets()}));
  const D expected = test::layer_in_double(g, GetParam().d_model, test::parameters_of(crossing), x, queries,
                                           memory, keys, Mask::none());
  for (int64_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(y.value()(i / y.cols(), i % y.cols()), expected.data()[i], 2e-5) << "number " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Presets, Geometry, testing::ValuesIn(test::presets()), test::name_of_case);

TEST_P(Geometry, WeightsAreWhatTheValuesAreWeighedWith) {
  const HeadGeometry& g = layer.geometry();
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{3, 1, 4});
  Tensor x = in_float(random_rows(ragged.rows(), 31));
  Tape tape;
  SiteValues seen;
  seen.keep("*.weights.*");
  Context context{.tape = tape, .sites = &seen};
  const Var input = tape.constant(x.view());
  const Var out =
      layer.self_heads(context, input, {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::causal());
  const Var v = layer.project(context, input, {.offsets = ragged.offsets()}).v;
  const Parameters p = test::parameters_of(layer);
  for (int32_t s = 0; s < ragged.sequences(); ++s) {
    for (int h = 0; h < g.heads; ++h) {
      const D map = in_double(seen.kept(fmt::format("{}.weights.{}", layer.name(), h)).sequence(s));
      ASSERT_EQ(map.rows(), ragged.length(s));
      const int64_t first = int64_t{h} * g.value_heads / g.heads * g.d_value;
      D values(ragged.length(s), g.d_value);
      for (int64_t i = 0; i < map.rows(); ++i) {
        for (int c = 0; c < g.d_value; ++c) values(i, c) = v.value()(ragged.begin(s) + i, first + c);
      }
      D expected = test::product(map, values);
      test::weight_oracle(g).finish(p, expected);
      for (int64_t i = 0; i < map.rows(); ++i) {
        for (int c = 0; c < g.d_value; ++c)
          ASSERT_NEAR(out.value()(ragged.begin(s) + i, int64_t{h} * g.d_value + c), expected(i, c), 2e-5);
      }
    }
  }
}

}  // namespace
}  // namespace mh
