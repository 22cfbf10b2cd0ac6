// Starts of equal variance: what is computed of the weights is what random rows show, and every geometry can be
// given the variances that canonical heads have.
#include "lab/studies/equal_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lab/studies/lab.h"
#include "multihead/base/ragged.h"
#include "multihead/heads/reports/trace/trace.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/head_columns.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using lab::Layer;
using lab::Matrix;

constexpr int kHeads = 4, kModel = 16;

StartVariances variances_of(Layer& layer, int d_model = kModel) {
  return start_variances(weights_of(layer.attention(), d_model));
}

TEST(StartVariances, AreThoseOfTheFormula) {
  Layer layer({.heads = 1, .d_key = 1, .d_value = 1, .scale = 0.5f}, 2, 1);
  const auto set = [&](const char* name, std::vector<double> numbers, int64_t rows) {
    Matrix m(rows, static_cast<int64_t>(numbers.size()) / rows);
    std::copy(numbers.begin(), numbers.end(), m.data());
    layer.set(name, m);
  };
  set("w_q", {1, 2}, 2), set("w_k", {3, 0}, 2), set("w_v", {1, 2}, 2), set("w_o", {1, 3}, 1);
  const StartVariances v = variances_of(layer, 2);
  EXPECT_DOUBLE_EQ(v.scores, 0.25 * (9 + 36));         // W^Q W^K^T = [3 0; 6 0]
  EXPECT_DOUBLE_EQ(v.values, 5);                       // 1 + 4, of one number
  EXPECT_DOUBLE_EQ(v.output, (1 + 9 + 4 + 36) / 2.0);  // W^V W^O = [1 3; 2 6], of two numbers
}

TEST(StartVariances, SumTheHeadsInTheOutputAndAverageThemElsewhere) {
  Layer layer({.heads = 2, .initialisation = HeadInitialisation::kEqual}, kModel, 3);
  const StartVariances two = variances_of(layer);
  Layer one({.heads = 1, .d_key = kModel / 2, .d_value = kModel / 2, .scale = layer.geometry().scale}, kModel,
            3);
  for (const char* name : {"w_q", "w_k", "w_v"})
    one.set(name, lab::columns(layer.parameter(name), 0, kModel / 2));
  one.set("w_o", lab::transposed(lab::columns(lab::transposed(layer.parameter("w_o")), 0, kModel / 2)));
  const StartVariances alone = variances_of(one);
  EXPECT_NEAR(two.scores, alone.scores, 1e-9);
  EXPECT_NEAR(two.values, alone.values, 1e-9);
  EXPECT_NEAR(two.output, 4 * alone.output, 1e-6) << "equal heads add up to twice the output";
}

TEST(StartVariances, OfCanonicalHeadsAreTheConstantsInExpectation) {
  struct Sizes {
    int heads, d_model;
  };
  for (const auto& [heads, d] : {Sizes{4, 16}, Sizes{1, 24}, Sizes{8, 64}}) {
    SCOPED_TRACE(heads);
    constexpr int kSeeds = 300;
    StartVariances mean;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Layer layer({.heads = heads}, d, seed);
      const StartVariances one = variances_of(layer, d);
      mean.scores += one.scores / kSeeds, mean.values += one.values / kSeeds,
          mean.output += one.output / kSeeds;
    }
    EXPECT_NEAR(mean.scores / kCanonicalStart.scores, 1, 0.03);
    EXPECT_NEAR(mean.values / kCanonicalStart.values, 1, 0.03);
    EXPECT_NEAR(mean.output / kCanonicalStart.output, 1, 0.03);
  }
}

struct Kind {
  const char* name;
  HeadGeometry geometry;
};

std::vector<Kind> kinds() {
  using enum HeadInitialisation;
  return {
      {"canonical", {.heads = kHeads}},
      {"slices", {.heads = kHeads, .input = HeadInput::slices()}},
      {"columns",
       {.heads = 5,
        .d_key = 4,
        .d_value = 4,
        .input = HeadInput::of_columns(random_columns(5, 6, kModel, 1))}},
      {"wide", {.heads = kHeads, .d_key = kModel, .d_value = kModel}},
      {"thin_keys", {.heads = kHeads, .d_key = 1, .d_value = 4}},
      {"multi_query", {.heads = kHeads, .key_heads = 1}},
      {"tied", {.heads = kHeads, .scores = Scores::kTied}},
      {"merged", {.heads = kHeads, .scores = Scores::kMerged}},
      {"doubled", {.heads = kHeads, .scores = Scores::kDoubled}},
      {"collaborative", {.heads = kHeads, .d_key = 4, .scores = Scores::kCollaborative, .shared_size = 6}},
      {"bloem_narrow_shared", geometry_preset("bloem-narrow-shared", kHeads, kModel)},
      {"bloem_fourth", geometry_preset("bloem-fourth", kHeads, kModel)},
      {"equal", {.heads = kHeads, .initialisation = kEqual}},
      {"equal_input", {.heads = kHeads, .initialisation = kEqualInput}}};
}

class EqualStart : public testing::TestWithParam<Kind> {};

constexpr StartVariances kWanted{
    .scores = 0.3, .values = 0.7, .output = 1.1};  // unlike each other and kCanonicalStart

void start_with(Layer& layer, const StartVariances& wanted) {
  LayerWeights weights = weights_of(layer.attention(), kModel);
  set_start_variances(weights, wanted);
  put_weights(weights, layer.attention());
}

TEST_P(EqualStart, HasTheWantedVariances) {
  for (const uint64_t seed : {1, 2}) {
    Layer layer(GetParam().geometry, kModel, seed);
    const LayerWeights before = weights_of(layer.attention(), kModel);
    start_with(layer, kWanted);
    const StartVariances v = variances_of(layer);
    EXPECT_NEAR(v.scores / kWanted.scores, 1, 1e-4);
    EXPECT_NEAR(v.values / (before.has("w_o") ? kWanted.values : kWanted.output), 1, 1e-4)
        << "without W^O the values are the output";
    EXPECT_NEAR(v.output / kWanted.output, 1, 1e-4);
    for (const auto& [name, value] : before.values) {
      const Matrix now = layer.parameter(name), old = in_double(value.view());
      const double size = lab::norm(now) / std::max(1e-30, lab::norm(old));
      EXPECT_LE(lab::largest_difference(now, lab::scaled(old, size)), 1e-6)
          << name << " only changes its size";
    }
  }
}

TEST_P(EqualStart, TwiceIsOnce) {
  Layer layer(GetParam().geometry, kModel, 3);
  start_with(layer, kWanted);
  const LayerWeights once = weights_of(layer.attention(), kModel);
  start_with(layer, kWanted);
  for (const auto& [name, value] : once.values)
    EXPECT_LE(lab::largest_difference(layer.parameter(name), in_double(value.view())), 1e-5) << name;
}

/// The mean of the squares of all numbers, but those of the diagonal where `off_diagonal`.
double mean_square(ConstMatrixView a, bool off_diagonal) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) {
      if (off_diagonal && i == j) continue;
      sum += static_cast<double>(a(i, j)) * static_cast<double>(a(i, j));
      ++count;
    }
  }
  return sum / static_cast<double>(count);
}

TEST_P(EqualStart, IsWhatRandomRowsShow) {
  constexpr int32_t kRows = 600;
  Layer layer(GetParam().geometry, kModel, 4);
  start_with(layer, kWanted);
  Random random(5);
  const Matrix x = lab::random_matrix(kRows, kModel, random);
  Tensor rows = lab::in_float(x);
  const HeadGeometry& g = layer.geometry();

  const AttentionTrace trace = trace_attention(layer.attention(), rows.view(), {}, Mask::none());
  double scores = 0, values = 0;
  for (int h = 0; h < g.heads; ++h) {
    const auto step = [&](const char* name, int number) {
      return trace.step(name + std::to_string(number)).value.view();
    };
    scores += mean_square(step("scaled_", h), true) / g.heads;
    values += mean_square(step("v_", h * g.value_heads / g.heads), false) / g.heads;
  }
  EXPECT_NEAR(scores / kWanted.scores, 1, 0.15);
  const bool has_output = g.output == HeadOutput::kProjection;
  EXPECT_NEAR(values / (has_output ? kWanted.values : kWanted.output), 1, 0.1);

  // A row that attends to itself alone has weight 1 in every head.
  const Ragged alone = Ragged::from_lengths(std::vector<int32_t>(kRows, 1));
  Tape tape;
  Context context{.tape = tape};
  const Var output = layer.attention().self(context, tape.constant(rows.view()),
                                            {.ids = {}, .ragged = &alone, .sentences = {}}, Mask::none());
  EXPECT_NEAR(mean_square(output.value(), false) / kWanted.output, 1, 0.15);
}

std::string name_of_kind(const testing::TestParamInfo<Kind>& kind) {
  return kind.param.name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, EqualStart, testing::ValuesIn(kinds()), name_of_kind);

TEST(EqualStartOfEqualHeads, LeavesThemEqualToTheLastBit) {
  for (const HeadInitialisation start : {HeadInitialisation::kEqual, HeadInitialisation::kEqualInput}) {
    Layer layer({.heads = kHeads, .initialisation = start}, kModel, 6);
    start_with(layer, kWanted);
    const LayerWeights weights = weights_of(layer.attention(), kModel);
    for (int h = 1; h < kHeads; ++h) {
      for (const char* name : {"w_q", "w_k", "w_v"})
        EXPECT_EQ(lab::largest_difference(own_part(weights, name, h), own_part(weights, name, 0)), 0) << name;
      const double output = lab::largest_difference(own_part(weights, "w_o", h), own_part(weights, "w_o", 0));
      EXPECT_EQ(output == 0, start == HeadInitialisation::kEqual);
    }
  }
}

TEST(EqualStartOfAModel, GivesEveryAttentionTheCanonicalVariances) {
  TranslatorShape shape = small_shape();
  shape.d_model = kModel, shape.encoder_heads = shape.decoder_heads = kHeads;
  shape.geometry.input = HeadInput::slices();
  EncoderDecoder model(shape.config());
  model.initialise(3);
  set_start_variances(model, kCanonicalStart);
  ASSERT_EQ(model.attentions().size(), 2u + 3 + 3);
  for (const auto& [name, heads, place] : model.attentions()) {
    const StartVariances v = start_variances(weights_of(model.attention(name), kModel));
    EXPECT_NEAR(v.scores / kCanonicalStart.scores, 1, 1e-4) << name;
    EXPECT_NEAR(v.values / kCanonicalStart.values, 1, 1e-4) << name;
    EXPECT_NEAR(v.output / kCanonicalStart.output, 1, 1e-4) << name;
  }
  const StartVariances mean = start_variances(shape, Start::kEqualVariances, 3);
  EXPECT_NEAR(mean.scores / kCanonicalStart.scores, 1, 1e-4);
  EXPECT_NEAR(mean.values / kCanonicalStart.values, 1, 1e-4);
  EXPECT_NEAR(mean.output / kCanonicalStart.output, 1, 1e-4);
}

TEST(EqualStartOfAModel, SlicesUsuallyStartWithFourTimesTheVarianceOfScores) {
  TranslatorShape shape = small_shape();
  shape.d_model = kModel, shape.encoder_heads = shape.decoder_heads = kHeads;
  shape.geometry.input = HeadInput::slices();
  StartVariances mean;
  constexpr int kSeeds = 60;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const StartVariances one = start_variances(shape, Start::kUsual, seed);
    mean.scores += one.scores / kSeeds, mean.values += one.values / kSeeds;
  }
  // Fans s and s: numbers of variance 1/s, so queries, keys and values of variance 1.
  EXPECT_NEAR(mean.scores / (4 * kCanonicalStart.scores), 1, 0.05);
  EXPECT_NEAR(mean.values, 1, 0.05);
}

TEST(HeadNoise, IsOfTheSizeAskedForAndLeavesTheFirstHead) {
  TranslatorShape shape = small_shape();
  shape.d_model = kModel, shape.encoder_heads = shape.decoder_heads = kHeads;
  shape.geometry.initialisation = HeadInitialisation::kEqual;
  EncoderDecoder equal(shape.config()), noisy(shape.config()), again(shape.config()), other(shape.config());
  for (EncoderDecoder* model : {&equal, &noisy, &again, &other}) model->initialise(3);
  add_head_noise(noisy, 0.25, 7);
  add_head_noise(again, 0.25, 7);
  add_head_noise(other, 0.25, 8);
  const auto of = [](const EncoderDecoder& model, const std::string& attention) {
    return weights_of(model.attention(attention), kModel);
  };
  double squares = 0, numbers = 0;
  for (const auto& [name, heads, place] : equal.attentions()) {
    for (const char* matrix : {"w_q", "w_k", "w_v", "w_o"}) {
      const auto part = [&, &name = name](const EncoderDecoder& model, int head) {
        return own_part(of(model, name), matrix, head);
      };
      EXPECT_EQ(lab::largest_difference(part(noisy, 0), part(equal, 0)), 0) << name << " " << matrix;
      for (int h = 1; h < heads; ++h) {
        EXPECT_EQ(lab::largest_difference(part(noisy, h), part(again, h)), 0);
        EXPECT_GT(lab::largest_difference(part(noisy, h), part(other, h)), 0);
        const double size = lab::norm(part(equal, 0)),
                     added = lab::norm(lab::sum(part(noisy, h), lab::scaled(part(equal, 0), -1)));
        squares += added * added / (size * size);
        numbers += 1;
      }
    }
  }
  EXPECT_NEAR(std::sqrt(squares / numbers), 0.25, 0.01);
}

}  // namespace
}  // namespace mh
