// Translators of other families that are trained further: their losses against transformers and torch
// (tests/oracles/training_goldens.py), and the folders that they become.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/train/checkpoint_store.h"
#include "multihead/train/translator/train_by_ranks.h"
#include "tests/folders/families/golden_model.h"
#include "tests/folders/folder_case.h"
#include "tests/io/hostile.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/thread_group.h"
#include "tests/train/small_run.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kGoldensOfFamilies = goldens_folder();

const json& goldens_of_training() {
  static const json found = json::parse(read_file(kGoldensOfFamilies / "training.json"));
  return found;
}

/// A folder of goldens, which oracles trained with the texts or ids of training.json.
struct Oracle {
  explicit Oracle(const std::string& of, const char* kind)
      : name(of),
        folder(kGoldensOfFamilies / of),
        all(goldens_of_training()),
        recipe(all["recipe"]),
        own(all[kind][of]),
        losses(own["losses"]) {}

  void expect_losses(const std::vector<double>& found) const {
    ASSERT_EQ(found.size(), losses.size());
    double most = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      most = std::max(most, std::abs(found[i] - losses[i]));
      EXPECT_NEAR(found[i], losses[i], 1e-4) << name << ", update " << i + 1;
    }
    testing::Test::RecordProperty("largest difference", std::to_string(most));
  }

  std::string name;
  fs::path folder;
  const json &all, &recipe, &own;
  std::vector<double> losses;
};

/// The texts of the oracle, all of which are a batch, and its recipe.
TranslatorSettings settings_of(const Oracle& oracle, const test::ScratchFolder& scratch) {
  std::ofstream source(scratch / "source"), target(scratch / "target");
  for (const json& pair : oracle.all["pairs"])
    source << pair[0].get<std::string>() << '\n', target << pair[1].get<std::string>() << '\n';
  TranslatorSettings settings;
  settings.train_source = scratch / "source";
  settings.train_target = scratch / "target";
  settings.model = scratch / "model";
  settings.init_from = oracle.folder.string();
  settings.pair_texts.languages.source_language = oracle.own.value("source", "");
  settings.pair_texts.languages.target_language = oracle.own.value("target", "");
  settings.pair_texts.source_prefix = oracle.own.value("prefix", "");
  settings.updates = std::ssize(oracle.losses);
  settings.batch_tokens = 10000;
  settings.max_length = 29;
  settings.dropout = 0;
  settings.learning_rate = oracle.recipe["peak"];
  settings.warmup = oracle.recipe["warmup"];
  settings.adam_epsilon = oracle.recipe["epsilon"];
  settings.clip_norm = oracle.recipe["clip_norm"];
  settings.label_smoothing = oracle.recipe["label_smoothing"];
  return settings;
}

TranslatorSettings short_settings(const Oracle& oracle, const test::ScratchFolder& scratch) {
  TranslatorSettings settings = settings_of(oracle, scratch);
  settings.updates = 6;
  settings.save_every = 2;
  settings.dropout = 0.1f;
  settings.batch_tokens = 40;
  settings.reproducible = true;
  return settings;
}

std::string name_of_test(std::string folder) {
  std::replace(folder.begin(), folder.end(), '/', '_');
  return folder;
}

class FurtherTraining : public testing::TestWithParam<const char*> {
 protected:
  const Oracle oracle{GetParam(), "texts"};
  const test::ScratchFolder scratch;
  TranslatorSettings settings = settings_of(oracle, scratch);
};

TEST_P(FurtherTraining, LossesOfTextsAreThoseOfTorch) {
  std::vector<double> found;
  TrainingWatcher watcher;
  watcher.progress = [&](const TrainingProgress& progress) { found.push_back(progress.loss); };
  const TrainingResult result = train_translator(settings, watcher);
  EXPECT_EQ(result.left_out, 0);
  oracle.expect_losses(found);

  // The folder is the one that it began with, but for what was trained.
  const fs::path made = settings.model;
  for (const auto& entry : fs::directory_iterator(oracle.folder)) {
    const std::string name = entry.path().filename().string();
    if (name == "config.json" || name == "model.safetensors") continue;
    EXPECT_EQ(read_file(made / name), read_file(entry.path())) << name;
  }
  const auto config = [](const fs::path& of) { return json::parse(read_file(of / "config.json")); };
  json before = config(oracle.folder), after = config(made);
  before["dtype"] = "float32";
  EXPECT_EQ(after, before);
  const auto weights = [](const fs::path& of) { return SafetensorsFile::open(of / "model.safetensors"); };
  const SafetensorsFile old_weights = weights(oracle.folder), new_weights = weights(made);
  EXPECT_EQ(new_weights.names(), old_weights.names());
  for (const std::string& name : old_weights.names()) {
    EXPECT_EQ(new_weights.shape(name), old_weights.shape(name)) << name;
    EXPECT_EQ(new_weights.floats(name) == old_weights.floats(name), name == "final_logits_bias") << name;
  }
  const ModelFolder folder = load_model_folder(made), given = load_model_folder(oracle.folder);
  EXPECT_EQ(folder.model_type, given.model_type);
  EXPECT_EQ(folder.remark(), "");
  EXPECT_EQ(folder.generation.forced_first, given.generation.forced_first);
  EXPECT_EQ(folder.generation.suppressed, given.generation.suppressed);
}

TEST_P(FurtherTraining, ARunThatWasStoppedGoesOnWithTheSameBits) {
  std::vector<std::string> finals;
  settings = short_settings(oracle, scratch);
  settings.average = 2;
  settings.average_of = AverageOf::kLast;
  for (const int64_t stop_at : {0, 3}) {
    settings.model = scratch / std::to_string(stop_at);
    settings.init_from = scratch / "init";
    fs::copy(oracle.folder, settings.init_from, fs::copy_options::recursive);
    int64_t made = 0;
    TrainingWatcher watcher;
    watcher.progress = [&](const TrainingProgress& progress) {
      made = progress.update;
      fs::remove_all(settings.init_from);  // it is not needed any more
    };
    watcher.stop = [&] { return stop_at > 0 && made == stop_at; };
    if (stop_at > 0) {
      EXPECT_THROW(train_translator(settings, watcher), Interrupted);
      watcher.stop = nullptr;
    }
    const TrainingResult result = train_translator(settings, watcher);
    EXPECT_EQ(result.averaged.size(), 2U);
    finals.push_back(read_file(fs::path(settings.model) / "model.safetensors"));
    EXPECT_TRUE(train_translator(settings).was_finished);
    EXPECT_EQ(load_model_folder(settings.model).model_type, load_model_folder(oracle.folder).model_type);
  }
  EXPECT_TRUE(finals[0] == finals[1]);
}

TEST_P(FurtherTraining, RanksMakeTheSameModelAndScores) {
  settings = short_settings(oracle, scratch);
  settings.valid_source = settings.train_source, settings.valid_target = settings.train_target;
  settings.validate_every = 3;
  settings.metric = Metric::kLoss;
  std::string expected;
  std::vector<Validation> scores;
  for (const int ranks : {1, 2}) {
    settings.model = scratch / std::to_string(ranks);
    std::vector<TrainingResult> results(static_cast<size_t>(ranks));
    ThreadGroup(ranks).run([&](ProcessGroup& group) {
      TranslatorSettings own = settings;
      results[static_cast<size_t>(group.rank())] = train_translator(own, {}, group);
    });
    const std::string weights = read_file(fs::path(settings.model) / "model.safetensors");
    if (expected.empty()) expected = weights;
    EXPECT_TRUE(weights == expected);
    scores.push_back(results.front().final.value());
  }
  EXPECT_EQ(scores[0].loss, scores[1].loss);
  EXPECT_EQ(scores[0].bleu, scores[1].bleu);
}

INSTANTIATE_TEST_SUITE_P(Folders, FurtherTraining,
                         testing::Values("bart/text", "t5/text", "languages/mbart", "languages/mbart50",
                                         "languages/nllb", "languages/nllb_legacy"),
                         [](const auto& of) { return name_of_test(of.param); });

class FurtherTrainingOfIds : public testing::TestWithParam<const char*> {};

TEST_P(FurtherTrainingOfIds, LossesAreThoseOfTorch) {
  const Oracle oracle(GetParam(), "ids");
  const ModelFolder folder = load_model_folder(oracle.folder);
  const auto golden = SafetensorsFile::open(oracle.folder.string() + ".golden.safetensors");
  TrainingCorpus corpus;
  corpus.tokens.source = test::golden_lists(golden, "source", "source_lengths");
  corpus.tokens.target = test::golden_lists(golden, "target_out", "target_out_lengths");
  for (size_t i = 0; i < corpus.tokens.size(); ++i) corpus.lines.push_back(static_cast<int64_t>(i) + 1);
  EncoderDecoderConfig config = folder.translator().config();
  config.encoder.dropout = config.decoder.dropout = {.residual = 0};
  EncoderDecoder model(config);
  copy_parameters(named_parameters(*folder.model), named_parameters(model), oracle.name);
  SmallTraining training(
      model, corpus,
      {.translation = {.batches = {.max_tokens = 10000}, .label_smoothing = oracle.recipe["label_smoothing"]},
       .trainer = {.adam = {.epsilon = oracle.recipe["epsilon"]},
                   .schedule = {.peak = oracle.recipe["peak"], .warmup = oracle.recipe["warmup"]},
                   .clip_norm = oracle.recipe["clip_norm"]}});
  std::vector<double> found;
  while (found.size() < oracle.losses.size()) {
    const UpdateReport report = training.trainer.update();
    found.push_back(report.smoothed_loss / static_cast<double>(report.target_tokens));
  }
  oracle.expect_losses(found);
}

INSTANTIATE_TEST_SUITE_P(Folders, FurtherTrainingOfIds,
                         testing::Values("marian/relu", "marian/swish_bf16_separate", "marian/silu_untied",
                                         "bart/scaled_bf16", "bart/untied_f16", "mbart/scaled_bf16",
                                         "m2m_100/plain", "m2m_100/untied", "t5/buckets", "t5/untied_f16",
                                         "t5/flan_bf16", "mt5/plain", "mt5/untied_bf16", "umt5/plain",
                                         "umt5/unscaled"),
                         [](const auto& of) { return name_of_test(of.param); });

/// A copy of a folder of goldens that is changed, and what is said when a training begins with it.
class FurtherTrainingRefusals : public testing::Test {
 protected:
  void begin_with(const char* name) {
    const Oracle oracle(name, "texts");
    settings = short_settings(oracle, scratch);
    settings.init_from = scratch / name;
    fs::create_directories(fs::path(settings.init_from).parent_path());
    fs::copy(oracle.folder, settings.init_from, fs::copy_options::recursive);
  }
  void edit(const char* file, const std::function<void(json&)>& change) const {
    test::edit_json(fs::path(settings.init_from) / file, change);
  }
  void expect_refusal(const char* part) const {
    test::expect_one_line_error([&] { train_translator(settings); }, part, settings.init_from);
    EXPECT_FALSE(fs::exists(fs::path(settings.model) / "config.json"));
  }

  const test::ScratchFolder scratch;
  TranslatorSettings settings;
};

TEST_F(FurtherTrainingRefusals, OfLanguages) {
  begin_with("languages/nllb");
  settings.pair_texts.languages.target_language = "";
  expect_refusal(
      "nothing says its target language: give `target_language`, or put tgt_lang into "
      "tokenizer_config.json; it has deu_Latn, eng_Latn, ron_Latn, zho_Hans, zho_Hant");
  settings.pair_texts.languages.target_language = "fra";
  expect_refusal("`target_language`: 'fra' is no language of this model, which has deu_Latn");
  begin_with("t5/text");
  settings.pair_texts.languages.source_language = "en";
  expect_refusal("has no codes of languages among which one could choose; leave it out");
  settings.init_from = "";
  settings.pair_texts.languages.source_language = settings.pair_texts.source_prefix = "";
  settings.pair_texts.languages.target_language = "de";
  expect_refusal("`target_language` is for a model that was trained already: give its folder as `init_from`");
}

TEST_F(FurtherTrainingRefusals, OfAnMbartWhoseStartTokenIsAnother) {
  begin_with("languages/mbart");
  edit("config.json", [](json& config) { config["decoder_start_token_id"] = 2; });
  expect_refusal("is an mBART whose translations begin with the token 2, while training begins them with ");
}

TEST_F(FurtherTrainingRefusals, OfTokenizers) {
  begin_with("bart/text");
  settings.tokenizer = settings.init_from + "/tokenizer.json";
  expect_refusal("the folder of a bart model keeps its own tokenizer; leave out `tokenizer`");
  settings.pair_texts.source_prefix = "a: ";
  expect_refusal("`source_prefix` is for the folder's own tokenizer; leave out `tokenizer`");
  settings.tokenizer = settings.pair_texts.source_prefix = "";
  edit("tokenizer.json", [](json& tokenizer) { tokenizer["post_processor"] = nullptr; });
  edit("tokenizer_config.json", [](json& config) { config["tokenizer_class"] = "PreTrainedTokenizerFast"; });
  expect_refusal("does not append the end token '</s>' to what it encodes");
  fs::remove(fs::path(settings.init_from) / "tokenizer.json");
  expect_refusal("has no tokenizer.json");
}

TEST_F(FurtherTrainingRefusals, OfShapesAndOtherModels) {
  begin_with("bart/text");
  settings.word_level = true;
  expect_refusal("`word_level` says how a tokenizer is learned, but `init_from` gives one");
  settings.word_level = false;
  settings.max_length = 30;
  expect_refusal("`max_length` 30 but it learned 29 positions");
  settings.max_length = 29;
  settings.d_ff = 12, settings.heads = 3, settings.norm = NormPlacement::kPre;
  expect_refusal(
      "has another shape: `d_ff` 12 but it has 13; `heads` 3 but it has 2; `norm` pre but it has post");
  settings.init_from = (kGoldensOfFamilies / "gpt2" / "tied").string();
  settings.d_ff = settings.heads = std::nullopt;
  settings.norm = NormPlacement::kPost;
  expect_refusal("holds a gpt2 model, which does not translate; name an encoder-decoder");
}

// The format of a family may say how long texts are; what a training left beside its model is not taken over.
TEST_F(FurtherTrainingRefusals, AreNoneOfLongerTextsOrOfAnotherTrainingsFolder) {
  begin_with("languages/nllb");
  std::ofstream(settings.init_from + "/training.json") << R"({"updates": 6, "end": "x", "averaged": [6]})";
  settings.max_length = 37;
  EXPECT_FALSE(train_translator(settings).was_finished);
  const json config = json::parse(read_file(fs::path(settings.model) / "config.json"));
  EXPECT_EQ(config["max_position_embeddings"], 37);
  EXPECT_EQ(config["model_type"], "m2m_100");
  EXPECT_FALSE(fs::exists(fs::path(settings.model) / "checkpoints" / "update-6" / "training.json"));
}

}  // namespace
}  // namespace mh
