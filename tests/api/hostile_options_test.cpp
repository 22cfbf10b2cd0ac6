// Every number of every option is checked where the library takes it, so that no door to it needs checks of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/importance/pruning_curve.h"
#include "multihead/heads/measures/heads_circuits.h"
#include "multihead/heads/measures/heads_relations.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/measures/induction.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/multihead.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kLeastInt = std::numeric_limits<int>::min(), kMostInt = std::numeric_limits<int>::max();
constexpr int64_t kLeastLong = std::numeric_limits<int64_t>::min();
const double kNan = std::nan(""), kInfinite = std::numeric_limits<double>::infinity();

/// A call with an option that cannot be: a UsageError that names it between backticks.
template <class Call>
void expect_option_refused(const char* name, const Call& call) {
  EXPECT_THAT(call, ThrowsMessage<UsageError>(HasSubstr(std::string("`") + name + "`: expected"))) << name;
}

class HostileOptions : public testing::Test {
 protected:
  static std::filesystem::path golden(const char* name) {
    return std::filesystem::path(goldens_folder()) / name;
  }
  static HeadsText lines() {
    return {.sources = {"two dogs run .", "a cat sees the dogs .", "the end .", "a dog ."}};
  }

  const ModelFolder encoder = load_model_folder(golden("fill/bert"));
  const ModelFolder causal = load_model_folder(golden("generate/gpt2"));
};

TEST_F(HostileOptions, OfMeasures) {
  for (const int wrong : {-1, kLeastInt}) {
    TextCorpus corpus(lines());
    expect_option_refused("nearest", [&] { heads_similar(encoder, corpus, {.nearest = wrong}); });
    expect_option_refused("most_bytes",
                          [&] { heads_similar(encoder, corpus, {.compare = {.most_bytes = wrong}}); });
    expect_option_refused("words", [&] { heads_lens(causal, "a dog", {.words = wrong}); });
    expect_option_refused("sentences",
                          [&] { heads_where(encoder, corpus, {.evidence = {.sentences = wrong}}); });
    expect_option_refused("usual", [&] { heads_where(encoder, corpus, {.evidence = {.usual = wrong}}); });
    expect_option_refused("tokens", [&] { heads_where(encoder, corpus, {.evidence = {.tokens = wrong}}); });
    expect_option_refused("alike", [&] { heads_where(encoder, corpus, {.evidence = {.alike = wrong}}); });
    expect_option_refused("least_count",
                          [&] { heads_where(encoder, corpus, {.evidence = {.least_count = wrong}}); });
    expect_option_refused("least_support",
                          [&] { heads_relations(encoder, corpus, {.least_support = wrong}); });
    expect_option_refused("probe", [&] { heads_relations(encoder, corpus, {.probe_epochs = wrong}); });
    expect_option_refused("random_draws", [&] { heads_circuits(*encoder.model, {.random_draws = wrong}); });
    expect_option_refused("sinks", [&] { heads_retrieval(causal, RetrievalTexts(), {.sinks = wrong}); });
    expect_option_refused("window", [&] { heads_retrieval(causal, RetrievalTexts(), {.window = wrong}); });
    expect_option_refused("text_tokens",
                          [&] { heads_retrieval(causal, RetrievalTexts(), {.text_tokens = wrong}); });
    expect_option_refused("lengths",
                          [&] { heads_retrieval(causal, RetrievalTexts(), {.lengths = {wrong}}); });
    expect_option_refused("sequences", [&] { induction_scores(causal, {.sequences = wrong}); });
    expect_option_refused("length", [&] { induction_scores(causal, {.length = wrong}); });
  }
  TextCorpus corpus(lines());
  for (const double wrong : {kNan, -1.0, kInfinite}) {
    expect_option_refused("cluster_ratio", [&] { heads_similar(encoder, corpus, {.cluster_ratio = wrong}); });
    expect_option_refused("sure", [&] { heads_where(encoder, corpus, {.evidence = {.sure = wrong}}); });
  }
  expect_option_refused("sure", [&] { heads_where(encoder, corpus, {.evidence = {.sure = 1.01}}); });
  expect_option_refused("sentences",
                        [&] { heads_where(encoder, corpus, {.evidence = {.sentences = kMostInt}}); });
  EXPECT_NO_THROW(heads_similar(encoder, corpus, {.nearest = 0, .cluster_ratio = 0}));
}

TEST_F(HostileOptions, OfImportanceAndAttribution) {
  const ScoredModel model = load_scored_model(golden("fill/bert"));
  TextCorpus corpus(lines());
  for (const int wrong : {0, -1, kLeastInt, kMostInt}) {
    expect_option_refused("points", [&] { pruning_curve(model, corpus, {}, {.points = wrong}); });
    expect_option_refused("steps", [&] { heads_attribution(encoder, "two dogs run .", {.steps = wrong}); });
    expect_option_refused("points", [&] { faithfulness(encoder, corpus, {.points = wrong}); });
    expect_option_refused("draws", [&] { faithfulness(encoder, corpus, {.draws = wrong}); });
    expect_option_refused("steps", [&] { faithfulness(encoder, corpus, {.attribution = {.steps = wrong}}); });
  }
  for (const int wrong : {-1, kLeastInt, kMostInt})
    expect_option_refused("random_orders",
                          [&] { pruning_curve(model, corpus, {}, {.random_orders = wrong}); });
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, kLeastLong}) {
    expect_option_refused("max_batch_tokens",
                          [&] { heads_attribution(encoder, "two dogs run .", {.max_batch_tokens = wrong}); });
    EXPECT_THROW(
        heads_importance(model, corpus, {.texts = {.read = {.observe = {.max_batch_tokens = wrong}}}}),
        UsageError);
    corpus.restart();
    EXPECT_THROW(
        heads_patch(encoder, {.clean = "a dog", .corrupt = "a cat", .answer = "runs", .wrong = "sees"},
                    {.max_batch_tokens = wrong}),
        UsageError);
    const SteerDirection nowhere{.site = "encoder.0.output"};
    expect_option_refused("max_batch_tokens",
                          [&] { heads_steer(model, nowhere, {}, &corpus, {.max_batch_tokens = wrong}); });
    corpus.restart();
  }
  EXPECT_THROW(heads_attribution(encoder, "two dogs run .", {.position = -1}), UsageError);
  for (const double wrong : {kNan, -1.0, 0.0, 1.01}) {
    EXPECT_THROW(heads_importance(model, corpus, {.texts = {.masked = wrong}}), UsageError);
    corpus.restart();
  }
}

TEST_F(HostileOptions, OfSearchesAndScores) {
  const LanguageModel& model = causal.language_model();
  const std::vector<std::vector<int32_t>> prompts{{3, 4, 5}};
  for (const double wrong : {kNan, kInfinite, -2147483648.0, 101.0}) {
    GenerateOptions options{.next_token = NextToken::kBeam, .length_penalty = {.alpha = wrong}};
    expect_option_refused("length_penalty", [&] { generate(model, prompts, options); });
  }
  for (const int32_t wrong : {0, -1, kLeastInt, kMostInt}) {
    expect_option_refused("beam_size", [&] { generate(model, prompts, {.beam_size = wrong}); });
    expect_option_refused("max_new_tokens",
                          [&] { generate(model, prompts, {.max_new_tokens = std::min(wrong, 0)}); });
  }
  expect_option_refused("temperature", [&] { generate(model, prompts, {.filters = {.temperature = kNan}}); });
  for (const double wrong : {kNan, -1.0, kInfinite})
    expect_option_refused("max_length_factor", [&] { check_search({.max_length_factor = wrong}); });
  for (const int32_t wrong : {-1, 1, kLeastInt, kMostInt})
    expect_option_refused("context", [&] { score_windows(model, prompts, {.context = wrong}); });
  for (const int32_t wrong : {-1, kLeastInt, kMostInt})
    expect_option_refused("stride", [&] { score_windows(model, prompts, {.context = 5, .stride = wrong}); });
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, kLeastLong}) {
    EXPECT_THROW(score_windows(model, prompts, {.max_batch_tokens = wrong}), UsageError);
    EXPECT_THROW(generate(model, prompts, {.max_batch_tokens = wrong}), UsageError);
    EXPECT_THROW(fill_words(encoder, {mask_token(encoder)}, {.max_batch_tokens = wrong}), UsageError);
  }
  for (const int32_t wrong : {0, -1, kMostInt}) {
    const std::vector<std::vector<BleuCounts>> counts(1, std::vector<BleuCounts>(2));
    expect_option_refused("samples", [&] { paired_bootstrap(counts, {}, {.samples = wrong}); });
  }
  const std::vector<std::string> one = {"a dog runs ."};
  for (const double wrong : {kNan, -1.0, 0.0, kInfinite})
    expect_option_refused("smoothing_value", [&] {
      corpus_bleu(one, one, {.smoothing = BleuSmoothing::kFloor, .smoothing_value = wrong});
    });
}

TEST_F(HostileOptions, OfTraining) {
  for (const double wrong : {kNan, -1.0, kInfinite}) {
    const auto refused = [&](const char* name, auto&& set) {
      TranslatorSettings settings;
      settings.train_source = "source";
      settings.train_target = "target";
      settings.model = "/nowhere/model";
      settings.updates = 1;
      set(settings);
      expect_option_refused(name, [&] { train_translator(settings); });
    };
    refused("learning_rate", [&](TranslatorSettings& s) { s.learning_rate = wrong; });
    refused("clip_norm", [&](TranslatorSettings& s) { s.clip_norm = wrong; });
    refused("adam_epsilon", [&](TranslatorSettings& s) { s.adam_epsilon = wrong; });
    refused("dropout", [&](TranslatorSettings& s) { s.dropout = static_cast<float>(wrong); });
    refused("rank_timeout", [&](TranslatorSettings& s) { s.rank_timeout = wrong; });
  }
  const std::vector<std::string> lines = {"a dog runs ."};
  for (const int32_t wrong : {-1, 0, 3, kMostInt})
    expect_option_refused("vocabulary_size", [&] { train_bpe(lines, {.vocabulary_size = wrong}); });
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, kLeastLong}) {
    expect_option_refused("least_pair_count", [&] { train_bpe(lines, {.least_pair_count = wrong}); });
    expect_option_refused("least_count", [&] { train_word_level(lines, {.least_count = wrong}); });
  }
}

}  // namespace
}  // namespace mh
