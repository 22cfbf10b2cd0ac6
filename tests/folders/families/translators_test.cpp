// Folders that the classes of BART, mBART, M2M-100 and T5 wrote, and what transformers computed with them in double precision.
// tests/oracles/translator_goldens.py and t5_goldens.py make both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/families/marian.h"
#include "multihead/folders/save_folder.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_ledger.h"
#include "multihead/models/translator_shape.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/folders/families/translator_golden.h"
#include "tests/io/hostile.h"
#include "tests/models/small_batch.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using TokenLists = std::vector<std::vector<int32_t>>;

constexpr int kMostNewTokens = 24;

using test::TranslatorGolden;

void expect_states_and_logits_of(const EncoderDecoder& model, const TranslatorGolden& golden) {
  Tape tape;
  Context context{.tape = tape};
  const ConstMatrixView memory = model.encode(context, golden.source.view()).value();
  test::expect_near_golden(memory, golden.file.floats("memory"), "memory");
  const std::vector<float> logits = test::logits_of(model, golden.source, golden.target_in);
  test::expect_near_golden({logits.data(), 1, std::ssize(logits)}, golden.file.floats("logits"), "logits");
}

/// Puts tensors of a number into the file of a folder.
void add_tensors(const std::filesystem::path& folder, const std::vector<std::string>& added) {
  const std::filesystem::path file = folder / "model.safetensors";
  const SafetensorsFile before = SafetensorsFile::open(file);
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<float>> numbers;
  std::vector<std::string> names = before.names();
  names.insert(names.end(), added.begin(), added.end());
  numbers.reserve(names.size());
  for (const std::string& name : names) {
    const bool there = before.contains(name);
    numbers.push_back(there ? before.floats(name) : std::vector<float>{3});
    tensors.push_back({.name = name,
                       .shape = there ? before.shape(name) : std::vector<int64_t>{1},
                       .data = std::span<const float>(numbers.back())});
  }
  write_file_atomically(file, write_safetensors(tensors));
}

struct TranslatorName {
  const char *family, *name;
};

class TranslatorGoldens : public testing::TestWithParam<TranslatorName> {
 protected:
  TranslatorGolden golden{GetParam().family, GetParam().name};
  ModelFolder folder = load_model_folder(golden.folder);
};

TEST_P(TranslatorGoldens, StatesAndLogitsAreThoseOfTransformers) {
  EXPECT_EQ(folder.model_type, GetParam().family);
  EXPECT_EQ(folder.remark(), "");
  expect_states_and_logits_of(folder.translator(), golden);
}

TEST_P(TranslatorGoldens, LogProbabilitiesFollowFromTheLogits) {
  expect_log_probabilities_of(folder.translator(), golden);
}

// With the token that the folder forces, and without.
TEST_P(TranslatorGoldens, TranslationsWithBeamsOfOneToFiveAreThoseOfTransformers) {
  const double penalty = golden.file.floats("length_penalty")[0];
  for (int beam = 1; beam <= 5; ++beam) {
    SCOPED_TRACE("beam " + std::to_string(beam));
    TranslateOptions options;
    options.search = {.beam_size = beam,
                      .n_best = beam,
                      .length_penalty = {.alpha = penalty},
                      .max_length = kMostNewTokens,
                      .suppressed = folder.generation.suppressed,
                      .forced_first = folder.generation.forced_first};
    TokenLists found;
    std::vector<float> scores;
    for (const auto& hypotheses : translate(folder.translator(), golden.sources, options)) {
      for (const Hypothesis& one : hypotheses) {
        found.push_back(one.tokens);
        scores.push_back(static_cast<float>(one.score));
      }
    }
    EXPECT_EQ(found, golden.lists("beam_" + std::to_string(beam)));
    if (beam == 1) continue;
    const auto expected = golden.file.floats("scores_" + std::to_string(beam));
    ASSERT_EQ(scores.size(), expected.size());
    for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-4) << i;
  }
}

TEST_P(TranslatorGoldens, TheShapeDescribesTheModel) {
  const EncoderDecoderConfig& config = folder.translator().config();
  for (const EncoderDecoderConfig& described : {config, shape_of(config).config()})
    EXPECT_EQ(model_ledger(described, 5, 3).total().parameters, folder.model->parameter_count());
}

TEST_P(TranslatorGoldens, HeadsOfBothSidesAreMuted) {
  const auto logits = [&](Sites* sites) {
    Tape tape;
    Context context{.tape = tape, .sites = sites};
    const ConstMatrixView found =
        folder.translator().states(context, golden.source.view(), golden.target_in.view()).value();
    return std::vector<float>(found.data, found.data + found.size());
  };
  for (const char* head :
       {"encoder.0.self_attention.1", "decoder.0.self_attention.0", "decoder.0.cross_attention.1"}) {
    SiteValues mute;
    mute.mute(head);
    folder.model->check(mute);
    EXPECT_NE(logits(&mute), logits(nullptr)) << head;
  }
}

TEST_P(TranslatorGoldens, WhatIsSavedIsReadAgainAndHasTheSameFiles) {
  const test::ScratchFolder scratch;
  save_model_folder(scratch / "saved", folder);
  const ModelFolder again = load_model_folder(scratch / "saved");
  expect_states_and_logits_of(again.translator(), golden);
  EXPECT_EQ(again.generation.forced_first, folder.generation.forced_first);
  const SafetensorsFile before = SafetensorsFile::open(golden.folder / "model.safetensors"),
                        after = SafetensorsFile::open(scratch / "saved" / "model.safetensors");
  for (const std::string& name : after.names()) {
    if (!before.contains(name)) {
      EXPECT_EQ(name, "final_logits_bias");  // of a model that had none, zeros
      continue;
    }
    EXPECT_EQ(before.shape(name), after.shape(name)) << name;
    EXPECT_EQ(before.floats(name), after.floats(name)) << name;
  }
  for (const std::string& name : before.names())
    EXPECT_TRUE(after.contains(name) || name == "model.shared.weight") << name;  // nobody reads it if untied
  const auto config = [](const std::filesystem::path& of) {
    json found = json::parse(read_file(of / "config.json"));
    for (const char* type : {"dtype", "torch_dtype"}) found.erase(type);
    return found;
  };
  EXPECT_EQ(config(scratch / "saved"), config(golden.folder));
  EXPECT_EQ(read_file(std::filesystem::path(scratch / "saved") / "generation_config.json"),
            read_file(golden.folder / "generation_config.json"));
}

INSTANTIATE_TEST_SUITE_P(
    Folders, TranslatorGoldens,
    testing::Values(TranslatorName{"bart", "plain"}, TranslatorName{"bart", "scaled_bf16"},
                    TranslatorName{"bart", "untied_f16"}, TranslatorName{"bart", "alone"},
                    TranslatorName{"bart", "text"}, TranslatorName{"mbart", "plain"},
                    TranslatorName{"mbart", "scaled_bf16"}, TranslatorName{"mbart", "untied"},
                    TranslatorName{"m2m_100", "plain"}, TranslatorName{"m2m_100", "odd_bf16"},
                    TranslatorName{"m2m_100", "untied"}, TranslatorName{"t5", "plain"},
                    TranslatorName{"t5", "buckets"}, TranslatorName{"t5", "untied_f16"},
                    TranslatorName{"t5", "flan_bf16"}, TranslatorName{"mt5", "plain"},
                    TranslatorName{"mt5", "untied_bf16"}, TranslatorName{"umt5", "plain"},
                    TranslatorName{"umt5", "unscaled"}),
    [](const auto& of) { return std::string(of.param.family) + "_" + of.param.name; });

TEST(BartFolder, TheShapeSaysHowEmbeddingsAndPositionsAre) {
  for (const char* family : {"bart", "mbart", "m2m_100"}) {
    const TranslatorShape shape =
        shape_of(load_model_folder(TranslatorGolden(family, "plain").folder).translator().config());
    EXPECT_EQ(shape.position_offset, 2);
    EXPECT_EQ(shape.norm_embeddings, std::string(family) != "m2m_100");
    EXPECT_EQ(shape.norm, std::string(family) == "bart" ? NormPlacement::kPost : NormPlacement::kPre);
  }
}

TEST(BartFolder, SaysWhichTokensAreForced) {
  const auto of = [](const char* family, const char* name) {
    return load_model_folder(std::filesystem::path(goldens_folder()) / family / name);
  };
  const ModelFolder plain = of("bart", "plain"), scaled = of("bart", "scaled_bf16"),
                    alone = of("bart", "alone");
  EXPECT_EQ(plain.generation.forced_first, 0);
  EXPECT_EQ(scaled.generation.forced_first, std::nullopt);
  EXPECT_EQ(plain.model->facts().start_id, 2);
  EXPECT_EQ(alone.model->facts().start_id, 7);
  EXPECT_EQ(of("mbart", "untied").model->facts().start_id,
            0);  // its config.json has none: that of a text's beginning
}

TEST(M2m100Folder, PaddingTokensInATextHaveNoPlace) {
  for (const char* name : {"plain", "odd_bf16", "untied"}) {
    const TranslatorGolden golden("m2m_100", name);
    const ModelFolder folder = load_model_folder(golden.folder);
    const Batch padded(golden.lists("padded"));
    Tape tape;
    Context context{.tape = tape};
    test::expect_near_golden(folder.translator().encode(context, padded.view()).value(),
                             golden.file.floats("padded_memory"), name);
  }
}

// Files of version 4 have tables that the class computes itself.
TEST(M2m100Folder, TablesOfSinusoidsInOlderFilesAreNotRead) {
  const test::DamagedGolden folder("m2m_100", "plain");
  add_tensors(folder.folder, {"model.encoder.embed_positions.weights"});
  const ModelFolder found = load_model_folder(folder.folder);
  EXPECT_EQ(found.remark(), "");
  expect_states_and_logits_of(found.translator(), TranslatorGolden("m2m_100", "plain"));
}

TEST(M2m100Folder, OurOwnFormatHasItsSinusoids) {
  const ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / "m2m_100" / "plain");
  const EncoderDecoderConfig& config = folder.translator().config();
  EXPECT_EQ(natural_model_type(config), "multihead");
  const EncoderDecoderConfig again = read_encoder_decoder_config(
      write_encoder_decoder_config(shape_of(config), "multihead", Tying(), {}), "config.json");
  EXPECT_EQ(again.sinusoids, SinusoidForm::kFairseq);
  EXPECT_EQ(again.position_offset, 2);
  EXPECT_EQ(again.embedding.uncounted, config.pad_id);
  EXPECT_EQ(again.target_embedding.uncounted, config.pad_id);
}

TEST(M2m100Folder, PositionsFollowThePaddingToken) {
  const test::DamagedGolden folder("m2m_100", "plain");
  folder.with([](json& config) { config["pad_token_id"] = 40; });
  EXPECT_EQ(load_model_folder(folder.folder).translator().config().position_offset, 41);
}

// Before generation_config.json there was.
TEST(BartFolder, ConfigurationsWithoutAFileForSearchesSayTheForcedTokenThemselves) {
  const test::DamagedGolden folder("bart", "plain");
  std::filesystem::remove(folder.folder / "generation_config.json");
  folder.with([](json& config) { config["forced_bos_token_id"] = 11; });
  EXPECT_EQ(load_model_folder(folder.folder).generation.forced_first, 11);
  folder.with([](json& config) {
    config["forced_bos_token_id"] = nullptr;
    config["force_bos_token_to_be_generated"] = true;
    config["bos_token_id"] = 9;
    config["no_repeat_ngram_size"] = 3;
  });
  const ModelFolder found = load_model_folder(folder.folder);
  EXPECT_EQ(found.generation.forced_first, 9);
  EXPECT_EQ(found.remark(), "");
  EXPECT_EQ(found.generation.no_repeat_ngram, 3);
  EXPECT_EQ(found.generation_remark, "");
}

TEST(BartFolder, SearchSettingsThatAreNotDoneAreNamed) {
  const test::DamagedGolden folder("bart", "plain");
  const auto remark = [&](const char* key, json value) {
    test::edit_json(folder.folder / "generation_config.json",
                    [&](json& config) { config[key] = std::move(value); });
    return load_model_folder(folder.folder).generation_remark;
  };
  EXPECT_EQ(remark("num_beams", 5), "");
  EXPECT_THAT(remark("decoder_start_token_id", 3),
              HasSubstr("decoder_start_token_id counts here as no default"));
  EXPECT_THAT(remark("repetition_penalty", 2.0), HasSubstr("repetition_penalty"));
  EXPECT_THAT(remark("forced_eos_token_id", {7, 8}), HasSubstr("forced_eos_token_id"));
}

TEST(BartFolder, APrefixBeginsWithTheForcedToken) {
  const TranslatorGolden golden("bart", "plain");
  const ModelFolder folder = load_model_folder(golden.folder);
  TranslateOptions options;
  options.search.forced_first = folder.generation.forced_first;
  const TokenLists one = {golden.sources[0]};
  const TokenLists right = {{0, 17}}, wrong = {{17}};
  const auto found = translate(folder.translator(), one, options, right);
  EXPECT_THAT(std::vector<int32_t>(found[0][0].tokens.begin(), found[0][0].tokens.begin() + 2),
              ElementsAre(0, 17));
  EXPECT_EQ(found[0][0].log_probabilities[0], 0);
  test::expect_one_line_error([&] { translate(folder.translator(), one, options, wrong); },
                              "prefix: it begins with token 17, and all translations of this model with 0",
                              "prefix");
  options.search.forced_first = 61;
  test::expect_one_line_error([&] { translate(folder.translator(), one, options); }, "forced_first", "id");
}

// Heads that the family's config.json cannot say.
TEST(BartFolder, WithFewerHeadsIsSavedInOurOwnFormat) {
  const test::ScratchFolder scratch;
  ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / "mbart" / "plain");
  HeadGeometry fewer = folder.model->attention("decoder.1.cross_attention").geometry();
  fewer.heads = fewer.key_heads = fewer.value_heads = 3;
  auto pruned = folder.model->with_heads({{"decoder.1.cross_attention", fewer}});
  folder.model = std::move(pruned);
  EXPECT_THROW(save_model_folder(scratch / "refused", folder), UsageError);
  save_model_folder(scratch / "saved", folder, {.own_format = OwnFormat::kAllowed});
  const ModelFolder again = load_model_folder(scratch / "saved");
  EXPECT_EQ(again.model_type, "mbart");
  EXPECT_EQ(again.model->attention("decoder.1.cross_attention").geometry(), fewer);
}

TEST(BartFolder, AHeadForClassesIsLeftWhereItIsAndNamed) {
  const test::DamagedGolden folder("bart", "plain");
  add_tensors(folder.folder, {"classification_head.dense.weight", "model.encoder.version"});
  const ModelFolder found = load_model_folder(folder.folder);
  EXPECT_THAT(found.not_read, ElementsAre("classification_head.dense.weight"));
  expect_states_and_logits_of(found.translator(), TranslatorGolden("bart", "plain"));
}

TEST(DamagedBart, ConfigurationsThatDoNotFitAreRefused) {
  for (const char* family : {"bart", "mbart"}) {
    const test::DamagedGolden damaged(family, "plain");
    damaged.with("is_decoder", true, "is_decoder is true; expected an encoder-decoder");
    damaged.with("is_encoder_decoder", false, "is_encoder_decoder is false; expected an encoder-decoder");
    damaged.with("d_model", 0, "d_model: expected an integer from 1");
    damaged.with("d_model", 25, "encoder_attention_heads is 3; expected a divisor of d_model 25");
    damaged.with("encoder_attention_heads", 7,
                 "encoder_attention_heads is 7; expected a divisor of d_model 24");
    damaged.with("decoder_layers", 4, "missing: model.decoder.layers.3.");
    damaged.with("encoder_layers", 1, "not used: model.encoder.layers.1.");
    damaged.with("encoder_layers", 1 << 20, "encoder_layers: expected an integer from 1 to 1024");
    damaged.with("encoder_ffn_dim", 30,
                 "shape of model.encoder.layers.0.fc1.weight: expected [30,24], got [31,24]");
    damaged.with("max_position_embeddings", 31,
                 "shape of model.encoder.embed_positions.weight: expected [33,24], got [31,24]");
    damaged.with("vocab_size", 60, "shape of final_logits_bias: expected [1,60], got [1,61]");
    damaged.with("activation_function", "step", "activation_function: expected one of");
    damaged.with("pad_token_id", 61, "pad_token_id is 61; expected 0 ... 60");
    damaged.with("pad_token_id", nullptr, "pad_token_id");
    damaged.with("eos_token_id", -1, "eos_token_id");
    damaged.with("decoder_start_token_id", 61, "decoder_start_token_id is 61; expected 0 ... 60");
    damaged.with("scale_embedding", 2, "scale_embedding: expected true or false");
    damaged.with("dropout", 1.5, "dropout");
    damaged.with("decoder_vocab_size", 61,
                 "decoder_vocab_size is 61; expected one vocabulary for both sides");
    damaged.with("normalize_embedding", false, "normalize_embedding is false; expected what the class");
    damaged.with("static_position_embeddings", true,
                 "static_position_embeddings is true; expected what the class");
    damaged.with("extra_pos_embeddings", 3, "extra_pos_embeddings is 3; expected what the class");
    damaged.with("normalize_before", std::string(family) == "bart", "normalize_before is ");
    damaged.with("tie_word_embeddings", false, "missing: lm_head.weight");
    damaged.with("hidden_size", 12, "hidden_size is 12, but d_model, which means the same, is 24");
  }
  test::DamagedGolden("bart", "plain")
      .with("model_type", "mbart", "missing: model.encoder.layer_norm.weight");
  test::DamagedGolden("mbart", "plain").with("model_type", "bart", "not used: model.decoder.layer_norm.bias");
  test::DamagedGolden("bart", "untied_f16")
      .with("tie_word_embeddings", true,
            "lm_head.weight is not model.shared.weight, though tie_word_embeddings is true; set it to false");
}

TEST(DamagedM2m100, ConfigurationsThatDoNotFitAreRefused) {
  const test::DamagedGolden damaged("m2m_100", "plain");
  damaged.with("is_decoder", true, "is_decoder is true; expected an encoder-decoder");
  damaged.with([](json& config) {
    for (const char* key : {"d_model", "encoder_attention_heads", "decoder_attention_heads"}) config[key] = 3;
  });
  damaged.expect_error("d_model is 3; expected 4 ... 65536");
  damaged.with("encoder_layers", 1, "not used: model.encoder.layers.1.");
  damaged.with("decoder_ffn_dim", 30,
               "shape of model.decoder.layers.0.fc1.weight: expected [30,24], got [53,24]");
  damaged.with("vocab_size", 60, "shape of model.shared.weight: expected [60,24], got [61,24]");
  damaged.with("pad_token_id", 61, "pad_token_id is 61; expected 0 ... 60");
  damaged.with("pad_token_id", nullptr, "pad_token_id");
  damaged.with("normalize_embedding", true, "normalize_embedding is true; expected what the class");
  damaged.with("static_position_embeddings", false, "static_position_embeddings is false; expected what");
  damaged.with("normalize_before", false, "normalize_before is false; expected what the class");
  damaged.with("tie_word_embeddings", false, "missing: lm_head.weight");
  damaged.with("model_type", "mbart", "missing: model.encoder.layernorm_embedding.weight");
}

TEST(DamagedBart, AForcedTokenThatIsNoneIsRefused) {
  const test::DamagedGolden folder("bart", "plain");
  for (const json& value : {json(61), json(-1), json("a"), json(1.5), json::array({0})}) {
    test::edit_json(folder.folder / "generation_config.json",
                    [&](json& config) { config["forced_bos_token_id"] = value; });
    folder.expect_error("forced_bos_token_id: expected token ids from 0 to 60, got");
  }
}

}  // namespace
}  // namespace mh
