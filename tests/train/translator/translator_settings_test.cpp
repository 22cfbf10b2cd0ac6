#include "multihead/train/translator/translator_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/base/error.h"
#include "multihead/io/config.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

using ::testing::HasSubstr;

TranslatorSettings enough() {
  TranslatorSettings settings;
  settings.train_source = "a.en";
  settings.train_target = "a.de";
  settings.model = "m";
  settings.updates = 10;
  return settings;
}

std::string value_of(const std::vector<Setting>& settings, const std::string& name) {
  for (const Setting& setting : settings) {
    if (setting.name == name) return setting.value;
  }
  return "absent";
}

TEST(TranslatorSettings, APresetFillsWhatWasNotGiven) {
  TranslatorSettings settings = enough();
  settings.d_ff = 300;
  settings.learning_rate = 1e-3;
  const TranslatorSettings tiny = resolved(settings);
  EXPECT_EQ(tiny.d_model, 128);
  EXPECT_EQ(tiny.d_ff, 300);
  EXPECT_EQ(tiny.encoder_layers, 4);
  EXPECT_EQ(tiny.heads, 4);
  EXPECT_EQ(tiny.warmup, 2000);
  EXPECT_EQ(tiny.learning_rate, 1e-3);
  EXPECT_EQ(tiny.save_every, tiny.validate_every);
  settings.preset = "big";
  EXPECT_EQ(resolved(settings).d_model, 1024);
  EXPECT_EQ(resolved(settings).heads, 16);
  settings.preset = "huge";
  EXPECT_THROW(resolved(settings), UsageError);
}

TEST(TranslatorSettings, RowsOfTable3AreTrainedAsTheirFamily) {
  TranslatorSettings settings = enough();
  settings.preset = "base-smoothing0";
  EXPECT_EQ(resolved(settings).label_smoothing, 0.0f);
  EXPECT_EQ(resolved(settings).warmup, 4000);
  settings.preset = "base-dropout0.2";
  EXPECT_EQ(resolved(settings).dropout, 0.2f);
  EXPECT_EQ(resolved(settings).label_smoothing, 0.1f);
  settings.preset = "tiny-learned";
  EXPECT_EQ(resolved(settings).dropout, 0.3f);
  EXPECT_EQ(resolved(settings).positions, Positions::kLearned);
  EXPECT_EQ(model_shape(resolved(settings), 777, 0).positions, Positions::kLearned);
  settings.preset = "base-dk16";
  const TranslatorShape shape = model_shape(resolved(settings), 777, 0);
  EXPECT_EQ(shape.geometry.d_key, 16);
  EXPECT_EQ(shape.geometry.d_value, 64);
  settings.head_changes = HeadChanges::of_json(R"({"d_key": 24})", "heads");
  EXPECT_EQ(model_shape(resolved(settings), 777, 0).geometry.d_key, 24);
}

TEST(TranslatorSettings, ModelConfigTakesThemAll) {
  TranslatorSettings settings = enough();
  settings.d_model = 60;
  settings.heads = 5;
  settings.encoder_layers = 7;
  settings.decoder_layers = 2;
  settings.dropout = 0.25f;
  settings.attention_dropout = 0.125f;
  settings.norm = NormPlacement::kPre;
  settings.max_length = 1000;
  const TranslatorShape shape = model_shape(resolved(settings), 777, 555);
  EXPECT_EQ(shape.vocabulary_size, 777);
  EXPECT_EQ(shape.target_vocabulary_size, 555);
  EXPECT_FALSE(shape.share_embeddings);
  EXPECT_TRUE(model_shape(resolved(settings), 777, 0).share_embeddings);
  EXPECT_EQ(shape.d_model, 60);
  EXPECT_EQ(shape.encoder_heads, 5);
  EXPECT_EQ(shape.decoder_heads, 5);
  EXPECT_EQ(shape.encoder_layers, 7);
  EXPECT_EQ(shape.decoder_layers, 2);
  EXPECT_EQ(shape.dropout.residual, 0.25f);
  EXPECT_EQ(shape.dropout.weights, 0.125f);
  EXPECT_EQ(shape.norm, NormPlacement::kPre);
  EXPECT_GE(shape.max_positions, 1000);
}

TEST(TranslatorSettings, JsonHoldsWhatFlagsHold) {
  TranslatorSettings settings = resolved(enough());
  settings.norm = NormPlacement::kPre;
  settings.seed = 18446744073709551615u;
  TranslatorSettings again;
  from_json(again, to_json(settings), "run.json");
  EXPECT_EQ(to_json(again), to_json(settings));
  EXPECT_THROW(from_json(again, R"({"learning_rat": 1})", "run.json"), FormatError);
  EXPECT_THROW(from_json(again, R"({"dropout": 2})", "run.json"), FormatError);
  EXPECT_THROW(from_json(again, R"({"norm": "middle"})", "run.json"), FormatError);
}

TEST(TranslatorSettings, LastingOnesAreComparedAsText) {
  TranslatorSettings settings = resolved(enough());
  const std::vector<Setting> before = fixed_settings(settings);
  EXPECT_EQ(value_of(before, "norm"), "post");
  EXPECT_EQ(value_of(before, "d_model"), "128");
  EXPECT_EQ(value_of(before, "learning_rate"), "0.005");
  EXPECT_EQ(value_of(before, "dropout"), "0.3");
  EXPECT_EQ(value_of(before, "lowercase"), "false");
  EXPECT_EQ(value_of(before, "updates"), "absent");
  EXPECT_EQ(value_of(before, "train_source"), "absent");
  settings.updates = 99;
  settings.model = "elsewhere";
  EXPECT_TRUE(differences(before, fixed_settings(settings)).empty());
  settings.seed = 2;
  settings.average_of = AverageOf::kBest;
  settings.label_smoothing = 0;
  EXPECT_EQ(differences(before, fixed_settings(settings)).size(), 3u);
  settings.schedule = Schedule::Decay::kLinear;  // the rate depends on how long the run is
  EXPECT_EQ(value_of(fixed_settings(settings), "updates"), "99");
}

TEST(TranslatorSettings, ContradictionsAreRefused) {
  const auto refused = [](auto change) -> std::string {
    TranslatorSettings settings = enough();
    change(settings);
    try {
      check_settings(settings);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refused([](TranslatorSettings&) {}), "accepted");
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.model.clear(); }), HasSubstr("`model`"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.train_target.clear(); }), HasSubstr("`train_target`"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.heads = 0; }),
              HasSubstr("`heads`: expected an integer from 1 to 65536, got 0"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.log_every = 0; }), HasSubstr("`log_every`"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.dropout = std::nanf(""); }), HasSubstr("`dropout`"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.valid_source = "v"; }), HasSubstr("`valid_target`"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.updates = 0; }), HasSubstr("`epochs`"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.patience = 3; }), HasSubstr("`patience` needs"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.tokenizer = "t", s.word_level = true; }),
              HasSubstr("`word_level`"));
  EXPECT_THAT(refused([](TranslatorSettings& s) { s.tokenizer = "t", s.separate_vocabularies = true; }),
              HasSubstr("`separate_vocabularies`"));
}

}  // namespace
}  // namespace mh
