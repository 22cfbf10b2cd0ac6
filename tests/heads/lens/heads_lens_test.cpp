// The logit lens beside whole passes of the model in which the last layer's output is replaced by the stream of another layer.
#include "multihead/heads/lens/heads_lens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/sites/text_pass.h"
#include "tests/heads/patching/patch_families.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kLensRounding = 1e-5;

/// log p of each word by each row of logits.
std::vector<std::vector<double>> log_shares(ConstMatrixView logits) {
  std::vector<std::vector<double>> all;
  for (int64_t i = 0; i < logits.rows; ++i) {
    std::vector<double> row(logits.row(i), logits.row(i) + logits.cols);
    double sum = 0;
    for (const double z : row) sum += std::exp(z);
    for (double& z : row) z -= std::log(sum);
    all.push_back(std::move(row));
  }
  return all;
}

/// The same of a pass of the whole model whose last layer gives the stream of this place.
std::vector<std::vector<double>> whole_pass(const ModelFolder& folder, const Observation& seen,
                                            const LensReport& lens, size_t place) {
  SiteValues put;
  put.replace(
      {.site = lens.places.back().site, .numbers = copied(seen.value(lens.places[place].site).view())});
  TextPass pass(*folder.model, seen, {.sites = &put});
  return log_shares(pass.logits().value());
}

int64_t rank_in(const std::vector<double>& log_p, int32_t id) {
  const double of_id = log_p[static_cast<size_t>(id)];
  return 1 + std::count_if(log_p.begin(), log_p.end(), [&](double other) { return other > of_id; });
}

void expect_reading(const LensReading& reading, const std::vector<double>& log_p,
                    const std::vector<double>& end, const LensPosition& position) {
  double entropy = 0, divergence = 0;
  for (size_t v = 0; v < log_p.size(); ++v) {
    entropy -= std::exp(log_p[v]) * log_p[v];
    divergence += std::exp(end[v]) * (end[v] - log_p[v]);
  }
  EXPECT_NEAR(reading.entropy.value(), entropy, kLensRounding);
  EXPECT_NEAR(reading.divergence.value(), divergence, kLensRounding);
  std::vector<int32_t> order(log_p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return log_p[static_cast<size_t>(a)] > log_p[static_cast<size_t>(b)];
  });
  ASSERT_EQ(reading.best.size(), 4u);
  for (size_t i = 0; i < reading.best.size(); ++i) {
    EXPECT_EQ(reading.best[i].id, order[i]);
    EXPECT_NEAR(reading.best[i].score, std::exp(log_p[static_cast<size_t>(order[i])]), kLensRounding);
  }
  ASSERT_TRUE(reading.predicted);
  EXPECT_EQ(reading.predicted->rank, rank_in(log_p, position.predicted->id));
  EXPECT_EQ(reading.actual.has_value(), position.actual.has_value());
  if (!reading.actual) return;
  EXPECT_EQ(reading.actual->rank, rank_in(log_p, position.actual->id));
  EXPECT_NEAR(reading.actual->log_probability, log_p[static_cast<size_t>(position.actual->id)],
              kLensRounding);
}

/// Returns the report.
LensReport expect_as_whole_passes(const ModelFolder& folder, const std::string& text,
                                  const std::string& target = "") {
  LensReport lens = heads_lens(folder, text, {.target = target, .sublayers = true, .words = 4});
  const Observation seen = observe_text(folder, text, target, {.keep = {"*"}});
  EXPECT_GT(lens.places.size(), 4u);
  const auto end = whole_pass(folder, seen, lens, lens.places.size() - 1);
  for (size_t place = 0; place < lens.places.size(); ++place) {
    SCOPED_TRACE(lens.places[place].site);
    const auto log_p = whole_pass(folder, seen, lens, place);
    for (size_t i = 0; i < lens.positions.size(); ++i) {
      const auto row = static_cast<size_t>(*lens.positions[i].position);
      expect_reading(lens.at(place, i), log_p[row], end[row], lens.positions[i]);
    }
  }
  const LensReading& last = lens.at(lens.places.size() - 1, 0);
  EXPECT_EQ(last.predicted->rank, 1);
  EXPECT_EQ(last.divergence, 0);
  EXPECT_GT(lens.at(0, 0).divergence.value(), 1e-3) << "the embeddings say something else";
  return lens;
}

TEST(Lens, OfACausalModelIsAsWholePasses) {
  const LensReport lens = expect_as_whole_passes(causal_folder(), "two dogs see the");
  EXPECT_EQ(lens.positions.size(), 4u);
  EXPECT_EQ(lens.positions[0].actual->token, "dogs");
  EXPECT_FALSE(lens.positions[3].actual) << "nothing follows";
}
TEST(Lens, OfGroupedQueriesIsAsWholePasses) {
  expect_as_whole_passes(llama_folder(), "two dogs see the");
}
TEST(Lens, OfMasksIsAsWholePasses) {
  const LensReport lens = expect_as_whole_passes(bert_folder(), "two [MASK] see the [MASK]");
  ASSERT_EQ(lens.positions.size(), 2u) << "the masks alone";
  EXPECT_EQ(lens.positions[1].position, 4);
  EXPECT_FALSE(lens.positions[1].actual);
}
TEST(Lens, OfATextWithoutMasksHasEveryPosition) {
  const LensReport lens = expect_as_whole_passes(modern_bert_folder(), "two dogs see the");
  ASSERT_EQ(lens.positions.size(), 4u);
  EXPECT_EQ(lens.positions[2].actual->token, "see") << "it predicts itself";
}
TEST(Lens, OfATranslatorIsAsWholePasses) {
  const LensReport lens = expect_as_whole_passes(translator_folder(), "two dogs see the", "the cats");
  ASSERT_EQ(lens.positions.size(), 3u);
  EXPECT_EQ(lens.positions[0].token, "<start>");
  EXPECT_EQ(lens.positions[1].actual->token, "cats");
  EXPECT_EQ(lens.places[1].site, "decoder.0.after_self_attention");
  EXPECT_EQ(lens.places[2].site, "decoder.0.after_cross_attention");
  EXPECT_EQ(lens.places[2].name(), "0 cross");
}

// All rows at once go through the same products as the model's own.
TEST(Lens, EndsWithTheModelsOwnLogits) {
  const ModelFolder folder = llama_folder();
  const LensReport lens = heads_lens(folder, "two dogs see the", {.answer = "park"});
  const Observation seen = observe_text(folder, "two dogs see the", {}, {.keep = {"decoder.logits"}});
  const auto log_p = log_shares(seen.value("decoder.logits").view());
  for (size_t i = 0; i < lens.positions.size(); ++i) {
    const LensReading& reading = lens.at(lens.places.size() - 1, i);
    EXPECT_NEAR(reading.answer->log_probability, log_p[i][static_cast<size_t>(lens.answer->token.id)], 1e-6);
    EXPECT_EQ(reading.answer->rank, rank_in(log_p[i], lens.answer->token.id));
    EXPECT_FALSE(reading.actual || reading.predicted) << "the answer is asked for in their place";
  }
}

TEST(Lens, OneOfManyPositionsIsAsAmongAll) {
  const ModelFolder folder = causal_folder();
  std::string text = "two dogs";
  for (int i = 0; i < 20; ++i) text += i % 3 == 0 ? " see" : " the";
  const LensReport all = heads_lens(folder, text);
  const auto count = static_cast<int>(all.positions.size());
  for (const int position : {0, 17, -1, -count}) {
    const LensReport one = heads_lens(folder, text, {.position = position});
    ASSERT_EQ(one.positions.size(), 1u);
    const auto at = static_cast<size_t>(position < 0 ? count + position : position);
    EXPECT_EQ(one.positions[0].position, static_cast<int>(at));
    EXPECT_EQ(one.positions[0].token, all.positions[at].token);
    for (size_t place = 0; place < one.places.size(); ++place) {
      EXPECT_NEAR(*one.at(place, 0).entropy, *all.at(place, at).entropy, 1e-6);
      EXPECT_NEAR(*one.at(place, 0).divergence, *all.at(place, at).divergence, 1e-6);
    }
  }
}

TEST(Lens, IsTheSameForAnyNumberOfThreads) {
  const ModelFolder folder = llama_folder();
  const auto numbers = [&](int threads) {
    const int before = thread_count();
    set_thread_count(threads);
    std::vector<double> all;
    for (const LensReading& reading : heads_lens(folder, "two dogs see the small park").readings) {
      all.insert(all.end(), {*reading.entropy, *reading.divergence, reading.predicted->log_probability});
    }
    set_thread_count(before);
    return all;
  };
  EXPECT_EQ(numbers(1), numbers(3));
}

TEST(Lens, ReadsModelsWithChangedHeads) {
  const ModelFolder folder = causal_folder();
  SiteValues muted;
  muted.mute("decoder.1.self_attention.*");
  const LensReport whole = heads_lens(folder, "two dogs see the", {.position = -1}),
                   changed = heads_lens(folder, "two dogs see the", {.position = -1, .sites = &muted});
  EXPECT_EQ(*changed.at(1, 0).entropy, *whole.at(1, 0).entropy) << "before the muted heads";
  EXPECT_GT(std::abs(*changed.at(2, 0).entropy - *whole.at(2, 0).entropy), 1e-4);
  muted.mute("decoder.9.self_attention.0");
  EXPECT_THAT([&] { heads_lens(folder, "two dogs", {.sites = &muted}); },
              ThrowsMessage<UsageError>(HasSubstr("decoder.9.self_attention")));
}

// Of the logits of every place: each is a copy of the text.
TEST(Lens, AnEditOfTheLogitsOfAPositionIsOneOfEachPlace) {
  const ModelFolder folder = causal_folder();
  SiteValues flat;
  flat.replace({.site = "decoder.logits",
                .sequence = 0,
                .position = 2,
                .numbers = Tensor(1, folder.model->facts().vocabulary)});
  const double even = std::log(folder.model->facts().vocabulary);
  for (const std::optional<int> asked : {std::optional<int>(), std::optional<int>(2)}) {
    const LensReport lens = heads_lens(folder, "two dogs see the", {.position = asked, .sites = &flat});
    for (size_t i = 0; i < lens.readings.size(); ++i) {
      const bool edited = *lens.positions[i % lens.positions.size()].position == 2;
      EXPECT_EQ(std::abs(*lens.readings[i].entropy - even) < 1e-6, edited);
    }
  }
}

ModelFolder golden_folder(const char* name) {
  ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / "labels" / name);
  folder.tokenizer = word_tokenizer(kWords);
  return folder;
}

TEST(Lens, LabelsThatDoNotExcludeEachOtherHaveNoEntropy) {
  for (const auto& [name, scores] : {std::pair("electra_replaced", LabelScores::kSigmoid),
                                     std::pair("bert_regression", LabelScores::kLogits)}) {
    SCOPED_TRACE(name);
    const ModelFolder folder = golden_folder(name);
    const LensReport lens = heads_lens(folder, "two dogs see");
    EXPECT_EQ(lens.scores, scores);
    const Observation seen = observe_text(folder, "two dogs see", {}, {.keep = {}});
    TextPass pass(*folder.model, seen);
    const ConstMatrixView logits = pass.label_logits().value();
    ASSERT_EQ(lens.positions.size(), static_cast<size_t>(logits.rows));
    for (size_t i = 0; i < lens.positions.size(); ++i) {
      const LensReading& reading = lens.at(lens.places.size() - 1, i);
      const auto logit = static_cast<double>(logits(static_cast<int64_t>(i), reading.best[0].id));
      const bool sigmoid = scores == LabelScores::kSigmoid;
      EXPECT_NEAR(reading.best[0].score, sigmoid ? 1 / (1 + std::exp(-logit)) : logit, 1e-6);
      EXPECT_NEAR(reading.predicted->log_probability, sigmoid ? std::log(reading.best[0].score) : logit,
                  1e-6);
      EXPECT_FALSE(reading.entropy || reading.divergence);
    }
  }
}

TEST(Lens, AnswersCountByTheirFirstToken) {
  const ModelFolder folder = causal_folder();
  std::vector<std::string> heard;
  const LensReport lens =
      heads_lens(folder, "two dogs see the",
                 {.answer = "park small", .remark = [&](const std::string& line) { heard.push_back(line); }});
  EXPECT_EQ(lens.answer->token.token, "park");
  EXPECT_EQ(lens.answer->tokens, 2);
  EXPECT_THAT(heard, testing::ElementsAre("'park small' has 2 tokens; the first, park, is what counts"));
}

TEST(Lens, RefusesWhatCannotBe) {
  const ModelFolder folder = causal_folder();
  const auto refused = [&](const ModelFolder& model, const LensOptions& options, const char* part,
                           const std::string& text = "two dogs") {
    EXPECT_THAT([&] { heads_lens(model, text, options); }, ThrowsMessage<UsageError>(HasSubstr(part)));
  };
  for (const int position : {2, -3})
    refused(folder, {.position = position}, "the model reads tokens 0 to 1, or from the end -1 to -2");
  refused(folder, {.answer = "horses"}, "`answer`: the tokenizer does not know 'horses'");
  refused(folder, {.answer = " "}, "`answer`: ' ' has no tokens");
  refused(folder, {.target = "the"}, "leave out translations");
  refused(folder, {.pair = "the"}, "does not read two texts as one sequence");
  refused(folder, {.words = 0}, "`words`: expected");
  refused(folder, {}, "the text has no words", " ");
}

}  // namespace
}  // namespace mh
