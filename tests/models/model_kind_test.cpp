// What a Model says of its kind, its stacks and what stands before its vocabulary, for each kind.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/model.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/head_name.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/stack_config.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

EncoderConfig kind_of_encoder(bool words) {
  EncoderConfig config;
  config.embedding = {.vocabulary = 37, .d_model = 12, .token_types = 2};
  config.max_positions = 19;
  config.stack = {.d_model = 12, .layers = {{.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 17}}}};
  if (words) config.masked_words = MaskedWordsConfig{};
  return config;
}

CausalConfig kind_of_causal(bool predicts) {
  CausalConfig config;
  config.embedding = {.vocabulary = 31, .d_model = 12};
  config.max_positions = 19;
  config.stack = {.name = "decoder",
                  .d_model = 12,
                  .layers = {{.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 17}}},
                  .mask = StackMask::causal()};
  config.predicts = predicts;
  return config;
}

std::vector<std::string> stacks_of(const Model& model) {
  std::vector<std::string> names;
  for (const StackConfig* stack : model.stack_configs()) names.push_back(stack->name);
  return names;
}

TEST(ModelKind, IsThatOfTheClass) {
  const EncoderModel encoder(kind_of_encoder(false));
  const CausalModel causal(kind_of_causal(false));
  const EncoderDecoder translator(small_shape().config());
  EXPECT_EQ(encoder.kind(), ModelKind::kEncoder);
  EXPECT_EQ(causal.kind(), ModelKind::kCausal);  // also of one that predicts nothing
  EXPECT_EQ(translator.kind(), ModelKind::kTranslator);
  EXPECT_STREQ(name_of(translator.kind(), kModelKindNames), "translator");
  EXPECT_THAT(stacks_of(encoder), ElementsAre("encoder"));
  EXPECT_THAT(stacks_of(causal), ElementsAre("decoder"));
  EXPECT_THAT(stacks_of(translator), ElementsAre("encoder", "decoder"));
  EXPECT_EQ(translator.stack_configs()[1]->d_model, small_shape().config().encoder.d_model);
  EXPECT_EQ(encoder.embedding_config().token_types, 2);
  EXPECT_EQ(causal.embedding_config().vocabulary, 31);
  EXPECT_EQ(translator.embedding_config().vocabulary, small_shape().config().embedding.vocabulary);
}

TEST(ModelKind, AttentionsSayWhereTheyStand) {
  const EncoderDecoder translator(small_shape().config());
  for (const Model::Attention& one : translator.attentions()) {
    const bool crosses = one.place.kind == AttentionKind::kCross;
    EXPECT_EQ(one.name, std::string(one.place.stack()) + "." + std::to_string(one.place.layer) +
                            (crosses ? ".cross_attention" : ".self_attention"));
    EXPECT_EQ(translator.place(one.name), one.place);
    EXPECT_EQ(translator.attention(one.name).heads(), one.heads);
  }
  const CausalModel causal(kind_of_causal(true));
  EXPECT_EQ(causal.attentions().front().place.kind, AttentionKind::kDecoderSelf);
  EXPECT_THAT(
      [&] { translator.place("encoder.3.cross_attention"); },
      ThrowsMessage<UsageError>(HasSubstr("this model has no attention 'encoder.3.cross_attention'")));
}

TEST(ModelKind, TakesOnlyNamesOfHeadsThatItHas) {
  const EncoderDecoder translator(small_shape().config());
  EXPECT_EQ(parse_head_name("encoder.3.self_attention.1"), (HeadName{"encoder.3.self_attention", 1}));
  for (const char* wrong :
       {"", ".", "..", "encoder.0.self_attention", "encoder.0.cross_attention.1",
        "encoder.-1.self_attention.1", "encoder.0.self_attention.x", "encoder.0.self_attention.1 ",
        "decoder..self_attention.1", "encoder.99999999999.self_attention.0"}) {
    EXPECT_THROW(translator.heads_named(HeadPattern(wrong)), UsageError) << wrong;
  }
}

TEST(ModelKind, OnlyAHeadForMaskedWordsMakesOtherStatesOfStates) {
  EncoderModel encoder(kind_of_encoder(true));
  Random random(5);
  encoder.visit([&](const std::string&, Parameter& p) { fill_normal(p, random, 0.3); });
  const EncoderDecoder translator(small_shape().config());
  Tape tape;
  const Context context{.tape = tape};
  Tensor rows(2, 12);
  for (int64_t i = 0; i < 24; ++i) rows.view().data[i] = static_cast<float>(i);
  const Var states = tape.constant(rows.view());
  EXPECT_TRUE(translator.word_states(context, states) == states);
  const Var words = encoder.word_states(context, states);
  EXPECT_FALSE(words == states);
  EXPECT_EQ(words.cols(), 12);
  EXPECT_EQ(encoder.vocabulary().size(), 37);
  EXPECT_TRUE(encoder.predicts());
}

TEST(ModelKind, AModelThatPredictsNothingHasNoVocabulary) {
  const EncoderModel encoder(kind_of_encoder(false));
  const CausalModel causal(kind_of_causal(false));
  for (const Model* model : std::vector<const Model*>{&encoder, &causal}) {
    EXPECT_FALSE(model->predicts());
    EXPECT_THAT([&] { model->vocabulary(); },
                ThrowsMessage<UsageError>(HasSubstr("take one that was saved with it")));
    EXPECT_EQ(model->sites().back().name, std::string(stacks_of(*model)[0]) + ".states");
  }
}

}  // namespace
}  // namespace mh
