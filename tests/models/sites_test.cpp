// Sites through whole models: their names, and gates of heads sentence by sentence.
#include "multihead/nn/sites.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/decoding.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/stack_cache.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const SiteShape& site : model.sites()) names.push_back(site.name);
  return names;
}

EncoderConfig small_encoder_config() {
  EncoderConfig config;
  config.embedding = {.vocabulary = 37, .d_model = 12};
  config.max_positions = 19;
  config.stack = {.d_model = 12, .layers = {{.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 17}}}};
  return config;
}
EncoderModel small_encoder() {
  return EncoderModel(small_encoder_config());
}

TEST(ModelSites, AreThoseOfItsStacks) {
  std::vector<std::string> of_attention;
  for (const char* part : {"input",
                           "query_input.0",
                           "query_input.1",
                           "query_input.2",
                           "key_input.0",
                           "key_input.1",
                           "key_input.2",
                           "value_input.0",
                           "value_input.1",
                           "value_input.2",
                           "projected_queries",
                           "projected_keys",
                           "queries",
                           "keys",
                           "values",
                           "gates",
                           "scores.0",
                           "scores.1",
                           "scores.2",
                           "weights.0",
                           "weights.1",
                           "weights.2",
                           "heads",
                           "contributions.0",
                           "contributions.1",
                           "contributions.2",
                           "output"})
    of_attention.push_back(std::string("encoder.0.self_attention.") + part);
  std::vector<std::string> expected{"encoder.embeddings", "encoder.0.input",
                                    "encoder.0.self_attention_norm.scale"};
  expected.insert(expected.end(), of_attention.begin(), of_attention.end());
  for (const char* name : {"encoder.0.after_self_attention", "encoder.0.feed_forward_norm.scale",
                           "encoder.0.feed_forward.input", "encoder.0.feed_forward.hidden",
                           "encoder.0.feed_forward.output", "encoder.0.output", "encoder.states"})
    expected.emplace_back(name);
  EXPECT_EQ(names_of(small_encoder()), expected);
  const EncoderDecoder translator(small_shape().config());
  const std::vector<std::string> all = names_of(translator);
  const size_t of_layers =
      2 * (8 + 9 + 6 * 2) + 3 * (10 + 2 * (9 + 6 * 5));  // two and three layers, 2 and 5 heads
  EXPECT_EQ(all.size(), 2 + 2 + of_layers + 1);
  EXPECT_EQ(all.back(), "decoder.logits");
  EXPECT_THAT(all, testing::Contains("decoder.2.cross_attention.gates"));
}

TEST(ModelSites, ThatItDoesNotHaveAreNamedWithThoseThatItHas) {
  const EncoderDecoder translator(small_shape().config());
  SiteValues values;
  values.keep("encoder.1.*.heads");
  values.watch("*.gates");
  values.replace({.site = "decoder.states", .numbers = Tensor(1, 20)});
  translator.check(values);
  values.keep("encoder.2.output");
  EXPECT_THAT([&] { translator.check(values); },
              ThrowsMessage<UsageError>(testing::AllOf(
                  HasSubstr("has no site 'encoder.2.output'; it has encoder.embeddings, encoder.#.input, "),
                  HasSubstr("decoder.#.cross_attention.gates, decoder.#.cross_attention.scores.#, "),
                  HasSubstr("; layers of the decoder: 0 to 2; layers of the encoder: 0 to 1"))));
}

TEST(ModelSites, LogitsOfAnEncoderNeedAHead) {
  Tape tape;
  Context context{.tape = tape};
  const Batch text(random_sources(8, {4, 6}));
  const EncoderModel encoder(small_encoder_config());
  EXPECT_THAT([&] { encoder.logits(context, encoder.read(context, text.view(), {}), text.view()); },
              ThrowsMessage<UsageError>(HasSubstr("no head for masked words")));
}

TranslatorShape smooth_shape() {
  TranslatorShape shape = small_shape();
  shape.activation = Activation::kGelu;  // relu has no derivative where it bends
  return shape;
}

class GatesOfATranslator : public testing::Test {
 protected:
  GatesOfATranslator() : model(smooth_shape().config()) {
    model.initialise(3);
    sharpen(model, 2);
    for (const int32_t id : target.ids) out.push_back((id * 5 + 1) % 37);
  }
  /// The summed negative log-likelihood of the targets.
  Var loss(Context& context) {
    return model.loss(context, source.view(), target.view(), out, {}, scratch).loss;
  }
  double loss(SiteValues& values) {
    Tape tape;
    Context context{.tape = tape, .sites = &values};
    return static_cast<double>(loss(context).value()(0, 0));
  }

  EncoderDecoder model;
  const Batch source{random_sources(5, {3, 7, 2})}, target{random_sources(6, {5, 2, 4})};
  std::vector<int32_t> out;
  VocabularyScratch scratch;
};

TEST_F(GatesOfATranslator, HaveTheGradientOfEachSentence) {
  SiteValues watched;
  watched.watch("*.gates");
  Tape tape(Tape::Mode::kRecordValues);
  Context context{.tape = tape, .sites = &watched};
  tape.backward(loss(context));
  model.visit([](const std::string& name, Parameter& parameter) {
    EXPECT_FALSE(parameter.gradient.exists()) << name;
  });
  for (const auto& [attention, heads, place] : model.attentions()) {
    const ConstMatrixView gradient = watched.gradient(attention + ".gates");
    ASSERT_EQ(gradient.rows, 3);
    ASSERT_EQ(gradient.cols, heads);
    for (int32_t s = 0; s < 3; ++s) {
      const auto at = [&, name = attention, head = heads - 1](float gate) {
        SiteValues put;
        Tensor number(1, 1);
        number(0, 0) = gate;
        put.replace({.site = name + ".gates", .sequence = s, .head = head, .numbers = std::move(number)});
        return loss(put);
      };
      const double slope = (at(1.01f) - at(0.99f)) / 0.02;
      EXPECT_NEAR(gradient(s, heads - 1), slope, 5e-3 * (1 + std::abs(slope)))
          << attention << " sentence " << s;
    }
  }
}

TEST_F(GatesOfATranslator, OfZeroAreMutedHeads) {
  SiteValues put;
  Tensor none(1, 1);
  none(0, 0) = 0;
  put.replace({.site = "decoder.1.cross_attention.gates", .head = 3, .numbers = std::move(none)});
  put.keep("decoder.1.cross_attention.gates");
  SiteValues muted;
  muted.mute("decoder.1.cross_attention.3");
  Tape tape;
  Context context{.tape = tape, .sites = &muted};
  EXPECT_EQ(loss(put), static_cast<double>(loss(context).value()(0, 0)));
  const Tensor& gates = put.value("decoder.1.cross_attention.gates");
  EXPECT_THAT(std::vector<float>(gates.data(), gates.data() + gates.size()),
              ElementsAre(1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1));
}

/// Several hypotheses of a source are its sequence.
TEST_F(GatesOfATranslator, InCachedDecodingAreThoseOfTheSource) {
  SiteValues put;
  Tensor half(1, 5);
  half.fill(0.5f);
  put.replace({.site = "decoder.0.self_attention.gates", .sequence = 1, .numbers = std::move(half)});
  put.keep("decoder.0.self_attention.gates");
  put.keep("decoder.0.cross_attention.gates");
  put.keep("decoder.0.input");
  Tape tape;
  Context context{.tape = tape, .sites = &put};
  StackCache cache;
  model.start(context, source.view(), cache);
  const std::vector<int32_t> sources{0, 1, 1, 1, 2}, tokens{4, 5, 6, 7, 8};
  const Ragged rows = Ragged::from_lengths(std::vector<int32_t>(5, 1));
  model.extend(context, tokens, {.rows = &rows, .sources = sources}, cache);
  const KeptValue& gates = put.kept("decoder.0.self_attention.gates");
  EXPECT_THAT(gates.offsets, ElementsAre(0, 1, 4, 5));
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(gates.value(i, 2), sources[static_cast<size_t>(i)] == 1 ? 0.5f : 1.0f) << i;
  EXPECT_EQ(put.kept("decoder.0.cross_attention.gates").value.rows(), 3);
  EXPECT_THAT(put.kept("decoder.0.input").offsets, ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(put.kept("decoder.0.input").positions, Each(0));
}

TEST(ModelSites, OfAnEncoderAndACausalModelHaveGradients) {
  EncoderModel encoder = small_encoder();
  CausalConfig config;
  config.embedding = {.vocabulary = 37, .d_model = 12};
  config.max_positions = 19;
  config.stack = {.name = "decoder",
                  .d_model = 12,
                  .layers = {{.self_attention = {.heads = 6, .key_heads = 2, .biases = Biases::kNone},
                              .feed_forward = {.d_ff = 19,
                                               .activation = Activation::kSwish,
                                               .gated = true,
                                               .biases = Biases::kNone}}},
                  .mask = StackMask::causal(),
                  .positions = Positions::kRotary,
                  .norm = {.kind = NormKind::kRms, .placement = NormPlacement::kPre}};
  config.positions = Positions::kRotary;
  CausalModel causal(config);
  causal.initialise(5);
  for (Model* model : {static_cast<Model*>(&encoder), static_cast<Model*>(&causal)}) {
    Random random(9);
    model->visit([&](const std::string& name, Parameter& parameter) {
      if (name.find("norm") == std::string::npos) fill_normal(parameter, random, 0.3);
    });
    const Batch text(random_sources(8, {4, 6}));
    const std::string stack = names_of(*model)[0].substr(0, 7);
    Tensor direction(10, 12);
    for (int64_t i = 0; i < direction.size(); ++i) direction.data()[i] = static_cast<float>(random.normal());
    SiteValues values;
    values.watch(stack + ".embeddings");
    values.keep("*");
    Tape tape(Tape::Mode::kRecordValues);
    Context context{.tape = tape, .sites = &values};
    const Var states = model->read(context, text.view(), {});
    tape.seed(states, std::as_const(direction).view());
    tape.backward();
    const ConstMatrixView gradient = values.gradient(stack + ".embeddings");
    const auto score = [&](float step) {
      Tensor moved = copied(values.value(stack + ".embeddings").view());
      for (int64_t i = 0; i < moved.size(); ++i) moved.data()[i] += step * direction.data()[i];
      SiteValues put;
      put.replace({.site = stack + ".embeddings", .numbers = std::move(moved)});
      Tape plain;
      Context own{.tape = plain, .sites = &put};
      const MatrixView found = model->read(own, text.view(), {}).value();
      double sum = 0;
      for (int64_t i = 0; i < found.size(); ++i)
        sum += static_cast<double>(found.data[i]) * direction.data()[i];
      return sum;
    };
    double along = 0;
    for (int64_t i = 0; i < direction.size(); ++i)
      along += static_cast<double>(gradient.row(i / 12)[i % 12]) * direction.data()[i];
    const double slope = (score(2e-3f) - score(-2e-3f)) / 4e-3;
    EXPECT_NEAR(along, slope, 0.02 * (1 + std::abs(slope))) << stack;
  }
}

}  // namespace
}  // namespace mh
