#include "multihead/models/translator_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_ledger.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/models/small_batch.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

void expect_same(const TranslatorShape& a, const TranslatorShape& b) {
  EXPECT_EQ(a.vocabulary_size, b.vocabulary_size);
  EXPECT_EQ(a.target_vocabulary_size, b.target_vocabulary_size);
  EXPECT_EQ(a.d_model, b.d_model);
  EXPECT_EQ(a.encoder_layers, b.encoder_layers);
  EXPECT_EQ(a.decoder_layers, b.decoder_layers);
  EXPECT_EQ(a.encoder_heads, b.encoder_heads);
  EXPECT_EQ(a.decoder_heads, b.decoder_heads);
  EXPECT_EQ(a.geometry, b.geometry);
  EXPECT_EQ(a.own_heads, b.own_heads);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.encoder_ff, b.encoder_ff);
  EXPECT_EQ(a.decoder_ff, b.decoder_ff);
  EXPECT_EQ(a.activation, b.activation);
  EXPECT_EQ(a.gated, b.gated);
  EXPECT_EQ(a.feed_forward_bias, b.feed_forward_bias);
  EXPECT_EQ(a.norm_kind, b.norm_kind);
  EXPECT_EQ(a.norm_epsilon, b.norm_epsilon);
  EXPECT_EQ(a.one_bias, b.one_bias);
  EXPECT_EQ(a.buckets, b.buckets);
  EXPECT_EQ(a.own_output, b.own_output);
  EXPECT_EQ(a.output_bias, b.output_bias);
  EXPECT_EQ(a.scale_states, b.scale_states);
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.dropout.residual, b.dropout.residual);
  EXPECT_EQ(a.dropout.weights, b.dropout.weights);
  EXPECT_EQ(a.dropout.activation, b.dropout.activation);
  EXPECT_EQ(a.max_positions, b.max_positions);
  EXPECT_EQ(a.share_embeddings, b.share_embeddings);
  EXPECT_EQ(a.position_offset, b.position_offset);
  EXPECT_EQ(a.scale_embedding, b.scale_embedding);
  EXPECT_EQ(a.norm_embeddings, b.norm_embeddings);
  EXPECT_EQ(a.pad_id, b.pad_id);
  EXPECT_EQ(a.eos_id, b.eos_id);
  EXPECT_EQ(a.decoder_start_id, b.decoder_start_id);
}

TEST(TranslatorShape, IsFoundAgain) {
  TranslatorShape shape = small_shape();
  expect_same(shape_of(shape.config()), shape);
  shape.geometry = {.d_key = 3, .d_value = 7};
  shape.norm = NormPlacement::kPre;
  shape.positions = Positions::kT5;
  shape.activation = Activation::kSwish;
  shape.dropout = {.residual = 0.25f, .weights = 0.5f, .activation = 0.125f};
  shape.share_embeddings = shape.scale_embedding = false;
  shape.target_vocabulary_size = 31;
  expect_same(shape_of(shape.config()), shape);
  shape.positions = Positions::kLearned;
  shape.position_offset = 2;
  shape.norm_embeddings = true;
  expect_same(shape_of(shape.config()), shape);
  put_t5(shape);
  shape.share_embeddings = shape.own_output = true;
  shape.target_vocabulary_size = 0;
  expect_same(shape_of(shape.config()), shape);
  // What stands for itself is kept when all attentions say it.
  shape.geometry = {.d_key = 4, .key_heads = 1};
  shape.encoder_heads = shape.decoder_heads = 5;
  expect_same(shape_of(shape.config()), shape);
  shape.geometry = {};
  shape.own_heads = {{.attention = "decoder.0.cross_attention", .geometry = {.heads = 4}},
                     {.attention = "encoder.1.self_attention", .geometry = {.heads = 2, .d_key = 3}}};
  expect_same(shape_of(shape.config()), shape);
}

TEST(TranslatorShape, SaysAllThatIsWrong) {
  TranslatorShape shape = small_shape();
  shape.encoder_layers = 0;
  shape.activation = Activation::kNone;
  shape.dropout.residual = 2;
  shape.eos_id = 37;
  EXPECT_THAT(problems_of(shape),
              testing::ElementsAre("encoder_layers is 0; expected 1 ... 1024",
                                   "activation is none; expected relu, gelu, gelu_tanh or swish",
                                   "dropout is 2; expected at least 0 and below 1",
                                   "eos_id is 37; expected 0 ... 36"));
  EXPECT_THROW(shape.config(), UsageError);
  shape = small_shape();
  shape.dropout.weights = -1;
  shape.target_vocabulary_size = 31;
  shape.decoder_start_id = 31;
  EXPECT_THAT(
      problems_of(shape),
      testing::ElementsAre("attention_dropout is -1; expected at least 0 and below 1",
                           "target_vocabulary_size is 31; shared embeddings need that of the source, 37",
                           "decoder_start_id is 31; expected 0 ... 30"));
}

TEST(EncoderDecoderConfig, SaysAllThatIsWrong) {
  EncoderDecoderConfig config = small_shape().config();
  EXPECT_THAT(problems_of(config), testing::IsEmpty());
  config.target_embedding.d_model = 8;
  config.encoder.mask = StackMask::causal();
  config.decoder.mask = StackMask::none();
  config.encoder.cross_attention = true;
  config.decoder.cross_attention = false;
  EXPECT_THAT(problems_of(config),
              testing::ElementsAre(
                  "the target embedding's d_model is 8, that of the source's 20",
                  "an encoder sees both sides of a token; set its masks to none or local",
                  "a causal decoder must not see what is to come; set its masks to causal or a window",
                  "an encoder reads no memory; set cross_attention to no",
                  "the decoder reads the encoder's memory; set cross_attention to yes"));
  config = small_shape().config();
  config.decoder.layers[1].cross_attention = {.heads = 3};
  EXPECT_THAT(problems_of(config), testing::ElementsAre(testing::HasSubstr("decoder.1.cross_attention: ")));
}

/// Sides that differ: as T5, BART and their like have them.
EncoderDecoderConfig of_two_kinds() {
  EncoderDecoderConfig config = small_shape().config();
  config.target_embedding.norm = NormConfig{};
  config.target_embedding.scaled = false;
  config.tied = false;
  config.position_offset = 2;
  config.encoder.positions = Positions::kT5;
  config.encoder.norm = {.kind = NormKind::kRms, .placement = NormPlacement::kPre};
  config.decoder.positions = Positions::kLearned;
  for (LayerConfig& layer : config.encoder.layers)
    layer.feed_forward = {
        .d_ff = 31, .activation = Activation::kSwish, .gated = true, .biases = Biases::kNone};
  return config;
}

TEST(EncoderDecoderConfig, SidesMayDiffer) {
  EncoderDecoder model(of_two_kinds());
  model.initialise(3);
  std::vector<std::string> names;
  int64_t rows = 0;
  std::as_const(model).visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
    names.push_back(name);
    if (name == "target_positions") rows = parameter.value.rows();
  }));
  EXPECT_EQ(rows, 41 + 2);
  EXPECT_THAT(names, testing::IsSupersetOf({"embedding", "output", "target_positions",
                                            "target_embedding.norm.gain", "target_embedding.norm.bias"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("target_embedding"))) << "the table is shared";
  EXPECT_THAT(names, testing::Not(testing::Contains("positions")));
  EXPECT_EQ(model_ledger(model.config(), 5, 7).total().parameters, model.parameter_count());
  EXPECT_LE(least_parameters(model.config()), static_cast<double>(model.parameter_count()));

  const Batch source(random_sources(5, {6})), target({{kPad, 7, 11, 5}});
  const std::vector<float> whole = test::logits_of(model, source, target);
  Tape tape;
  Decoding decoding(model, Context{.tape = tape}, source.view());
  const std::vector<int32_t> first = {0};
  std::vector<float> in_turn;
  for (const int32_t token : target.ids) {
    const ConstMatrixView states = decoding.step(std::vector{token}, first, first);
    Tensor logits(1, 37);
    model.vocabulary().logits(states, logits.view());
    for (const float logit : test::copy_of(logits.view())) in_turn.push_back(logit);
  }
  EXPECT_THAT(in_turn, testing::Pointwise(testing::FloatNear(1e-5f), whole));
}

TEST(EncoderDecoderConfig, HeadsChangeOnEitherSide) {
  const EncoderDecoder model(of_two_kinds());
  const auto changed = model.with_heads(
      {{"encoder.0.self_attention", {.heads = 4}}, {"decoder.1.cross_attention", {.heads = 2, .d_key = 3}}});
  EXPECT_EQ(changed->attention("encoder.0.self_attention").heads(), 4);
  EXPECT_EQ(changed->attention("encoder.1.self_attention").heads(), 2);
  EXPECT_EQ(changed->attention("decoder.1.cross_attention").geometry().d_key, 3);
  EXPECT_THROW(model.with_heads({{"encoder.0.cross_attention", {}}}), UsageError);
  EXPECT_THAT(
      [&] {
        model.with_heads({{"encoder.0.self_attention", {.heads = 3}}});
      },
      testing::ThrowsMessage<UsageError>(testing::HasSubstr("encoder.0.self_attention: ")));
}

// A cache keeps no products of keys, and the decoder of such a model has one.
TEST(TranslatorShape, DisentangledPositionsAreOfEncoders) {
  TranslatorShape shape = small_shape();
  shape.positions = Positions::kDisentangled;
  EXPECT_THAT(problems_of(shape), testing::ElementsAre(testing::HasSubstr("disentangled are for encoders")));
}

}  // namespace
}  // namespace mh
