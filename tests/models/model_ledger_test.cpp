#include "multihead/models/model_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

TEST(ModelLedger, HasTheModelsParameters) {
  TranslatorShape shape = small_shape();
  const auto check = [&](const char* what) {
    EXPECT_EQ(model_ledger(shape.config(), 5, 7).total().parameters,
              EncoderDecoder(shape.config()).parameter_count())
        << what;
  };
  check("shared embeddings, post-norm");
  for (const auto& [name, positions] : kWriterPositionNames) {
    shape.positions = positions;
    check(name);
  }
  shape.positions = Positions::kSinusoidal;
  shape.norm = NormPlacement::kPre;
  check("pre-norm");
  shape.share_embeddings = false;
  shape.target_vocabulary_size = 43;
  check("separate vocabularies");
  for (const GeometryName& name : geometry_names()) {
    shape.geometry = geometry_preset(name.name, 2, shape.d_model);
    if (name.name == "grouped-query") continue;  // as many groups for 2 as for 5 heads there are not
    check(std::string(name.name).c_str());
  }
}

// The paper's Table 3: 65 M and 213 M; with a joint vocabulary of 37,000 they compute to these.
TEST(ModelLedger, BaseAndBig) {
  TranslatorShape shape = transformer_preset("base");
  shape.vocabulary_size = 37000;
  EXPECT_EQ(model_ledger(shape.config(), 1, 1).total().parameters, 63'082'496);
  const int64_t base = shape.vocabulary_size;
  shape = transformer_preset("big");
  shape.vocabulary_size = static_cast<int32_t>(base);
  EXPECT_EQ(model_ledger(shape.config(), 1, 1).total().parameters, 214'245'376);
}

TEST(ModelLedger, IsTheSumOfItsParts) {
  const TranslatorShape shape = small_shape();  // 2 and 3 layers, d 20, 2 and 5 heads, d_ff 31 and 29
  const ModelLedger found = model_ledger(shape.config(), 5, 7);
  const auto part = [&](const std::string& name) {
    for (const LedgerPart& p : found.parts) {
      if (p.name == name) return p;
    }
    ADD_FAILURE() << name;
    return LedgerPart();
  };
  EXPECT_EQ(part("encoder self-attention").multiply_adds, 2 * found.encoder_self.total().multiply_adds);
  EXPECT_EQ(part("encoder self-attention").exponentials, 2 * 2 * 5 * 5);
  EXPECT_EQ(part("decoder self-attention").exponentials, 3 * 5 * (7 * 8 / 2));
  EXPECT_EQ(part("decoder cross-attention").exponentials, 3 * 5 * 7 * 5);
  EXPECT_EQ(part("encoder feed-forward").multiply_adds, 2 * 2 * 5 * 20 * 31);
  EXPECT_EQ(part("decoder feed-forward").multiply_adds, 3 * 2 * 7 * 20 * 29);
  EXPECT_EQ(part("vocabulary").multiply_adds, 7 * 20 * 37);
  EXPECT_EQ(part("vocabulary").exponentials, 7 * 37);
  int64_t sum = 0;
  for (const LedgerPart& p : found.parts) sum += p.flops();
  EXPECT_EQ(found.total().flops(), sum);
}

class CausalLedger : public testing::Test {
 protected:
  LedgerPart part(const std::string& name) const {
    const ModelLedger found = model_ledger(config, 9);
    for (const LedgerPart& p : found.parts) {
      if (p.name == name) return p;
    }
    ADD_FAILURE() << name;
    return {};
  }

  CausalConfig config = {.embedding = {.vocabulary = 37, .d_model = 12},
                         .positions = Positions::kRotary,
                         .max_positions = 20,
                         .stack = {.name = "decoder",
                                   .d_model = 12,
                                   .layers = std::vector<LayerConfig>(
                                       2, {.self_attention = {.heads = 3, .biases = Biases::kNone},
                                           .feed_forward = {.d_ff = 7, .biases = Biases::kNone}}),
                                   .mask = StackMask::causal(),
                                   .positions = Positions::kRotary,
                                   .norm = {.kind = NormKind::kRms, .placement = NormPlacement::kPre}}};
};

TEST_F(CausalLedger, CountsNormsWhereTheyStand) {
  constexpr int64_t kNumbers = 9 * 12;
  const auto expect = [&](int64_t norms, int64_t flops_of_norm = 4) {
    EXPECT_EQ(part("norms").parameters, norms * 12);
    EXPECT_EQ(part("norms").other_flops, (flops_of_norm * norms + 4) * kNumbers);  // and four sums
    EXPECT_EQ(model_ledger(config, 9).total().parameters, CausalModel(config).parameter_count());
  };
  expect(5);
  config.stack.order = SublayerOrder::kParallel;
  expect(5);
  config.stack.order = SublayerOrder::kParallelOneNorm;
  expect(3);
  config.stack.order = SublayerOrder::kOneAfterAnother;
  config.stack.norm.placement = NormPlacement::kOutput;
  expect(5);
  config.stack.norm.placement = NormPlacement::kPreAndOutput;
  expect(9);
  config.stack.norm.kind = NormKind::kLayer;
  config.stack.norm.biases = Biases::kNone;
  expect(9, 6);
}

TEST_F(CausalLedger, CountsLabelsInThePlaceOfAnOutputLayer) {
  config.predicts = false;
  const ModelLedger states = model_ledger(config, 9);
  for (const bool tokens : {false, true}) {
    config.labels =
        LabelConfig{.labels = 5, .rows = tokens ? LabelRows::kTokens : LabelRows::kLast, .bias = tokens};
    const ModelLedger found = model_ledger(config, 9);
    EXPECT_EQ(found.total().parameters, CausalModel(config).parameter_count());
    EXPECT_EQ(found.parts.back().name, "labels");
    EXPECT_EQ(found.total().multiply_adds - states.total().multiply_adds, (tokens ? 9 : 1) * 12 * 5);
  }
}

TEST_F(CausalLedger, CountsCapsWindowsAndNumbersThatTurn) {
  const LedgerPart plain = part("self-attention");
  EXPECT_EQ(plain.exponentials, 2 * 3 * 45);
  config.logit_soft_cap = 30.0f;
  EXPECT_EQ(part("logit cap").exponentials, 9 * 37);
  EXPECT_EQ(part("logit cap").other_flops, 2 * 9 * 37);
  for (LayerConfig& layer : config.stack.layers) layer.self_attention.soft_cap = 50.0f;
  EXPECT_EQ(part("self-attention").exponentials, 2 * 2 * 3 * 45);
  EXPECT_EQ(part("self-attention").other_flops, plain.other_flops + 2 * 2 * 3 * 45);
  EXPECT_EQ(part("self-attention").parameters, plain.parameters);
  config.stack.layers[1].mask = StackMask::sliding_window(2);
  EXPECT_EQ(part("self-attention").exponentials, 2 * 3 * (45 + 17));
  EXPECT_EQ(model_ledger(config, 9).decoder_self.total().exponentials, 2 * 3 * 45);

  config.stack.layers[1] = config.stack.layers[0];
  const int64_t turned = part("self-attention").other_flops;
  config.stack.layers[1].positions =
      Positions::kNone;  // 3 operations for each of 4 numbers of 3 queries and 3 keys
  EXPECT_EQ(part("self-attention").other_flops, turned - 9 * 3 * 4 * 6);
  config.stack.rotary.rotated = 2;
  EXPECT_EQ(part("self-attention").other_flops, turned - 9 * 3 * (4 + 2) * 6);
}

TEST(ModelLedger, RefusesWhatCannotBe) {
  TranslatorShape shape = small_shape();
  EXPECT_THAT([&] { model_ledger(shape.config(), 1, 42); },
              testing::ThrowsMessage<UsageError>("tokens is 42; this model reads sequences of 0 ... 41"));
  shape.encoder_heads = 3;
  EXPECT_THAT([&] { model_ledger(shape.config(), 1, 1); },
              testing::ThrowsMessage<UsageError>(
                  "this Transformer cannot be built: encoder_heads is 3; expected a divisor of d_model 20"));
}

}  // namespace
}  // namespace mh
