// The effect and the damage of a direction beside whole passes of the model with the vector added.
#include "multihead/heads/steering/heads_steer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "tests/heads/importance/scored_families.h"
#include "tests/heads/patching/patch_families.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

SteerDirection wave_direction(const std::string& site, int64_t columns) {
  SteerDirection direction{.site = site, .numbers = Tensor(1, columns)};
  for (int64_t c = 0; c < columns; ++c)
    direction.numbers(0, c) = std::sin(0.5f + 2.1f * static_cast<float>(c));
  return direction;
}

SteerDirection direction_for(const Model& model, const std::string& end) {
  for (const SiteShape& site : model.sites()) {
    if (site.name.ends_with(end)) return wave_direction(site.name, site.columns);
  }
  throw UsageError("no site ends with " + end);
}

/// Answers of each family beside a whole pass for each strength: differences of logits are those of log-probabilities.
void expect_answers_of_whole_passes(ModelFolder made, const PatchQuestion& asked, const std::string& end) {
  const ScoredModel model(std::move(made));
  const ModelFolder& folder = model.folder();
  const SteerDirection direction = direction_for(*folder.model, end);
  const PatchTexts read = read_patch_texts(folder, asked, {}, nullptr);
  const SteerReport found = heads_steer(model, direction,
                                        {.texts = {asked.clean, asked.corrupt},
                                         .answers = {asked.answer, asked.wrong, asked.answer},
                                         .prefix = asked.prefix},
                                        nullptr, {.strengths = {-1.5, 0, 0.25, 3}});
  ASSERT_EQ(found.doses.size(), 4u);
  EXPECT_EQ(found.answers(), 3u);
  std::vector<double> of_clean;
  for (const SteerDose& dose : found.doses) {
    SiteValues values;
    values.add(direction.times(static_cast<float>(dose.strength)));
    for (size_t t = 0; t < 2; ++t) {
      const std::vector<double>& p = dose.log_probabilities[t];
      EXPECT_NEAR(p[0] - p[1], test::whole_score(folder, read, t == 0 ? read.clean : read.corrupt, &values),
                  3e-5);
      EXPECT_EQ(p[2], p[0]);
      EXPECT_LT(p[0], 0);
    }
    EXPECT_EQ(dose.mean(1), (dose.log_probabilities[0][1] + dose.log_probabilities[1][1]) / 2);
    EXPECT_FALSE(dose.loss);
    of_clean.push_back(dose.log_probabilities[0][0]);
  }
  EXPECT_GT(std::abs(of_clean[0] - of_clean[1]), 1e-2);
}

TEST(Steer, AnswersOfEachFamilyAreThoseOfWholePasses) {
  expect_answers_of_whole_passes(test::causal_folder(), test::kContinued, ".0.output");
  expect_answers_of_whole_passes(test::llama_folder(), test::kContinued, ".0.self_attention.heads");
  expect_answers_of_whole_passes(test::bert_folder(), test::kMasked, ".1.output");
  expect_answers_of_whole_passes(test::modern_bert_folder(), test::kMasked, ".0.feed_forward.output");
  expect_answers_of_whole_passes(test::translator_folder(), test::kTranslated, "encoder.0.output");
  expect_answers_of_whole_passes(test::translator_folder(), test::kTranslated,
                                 "decoder.1.cross_attention.output");
}

TEST(Steer, LossIsThatOfTheScores) {
  for (ScoredFamily& family : scored_families()) {
    if (family.texts.kind == ScoreKind::kLabels || family.texts.kind == ScoreKind::kVectors) continue;
    SCOPED_TRACE(family.name);
    const SteerDirection direction = direction_for(*family.model.folder().model, ".0.output");
    const HeadsText lines = lines_of_importance(family.name == "translator");
    for (const int64_t tokens : {1, 19, 1000}) {
      TextCorpus corpus(lines);
      const SteerReport found = heads_steer(family.model, direction, {}, &corpus,
                                            {.strengths = {0, 2}, .max_batch_tokens = tokens});
      EXPECT_EQ(found.other_texts, std::ssize(family.texts.texts));
      EXPECT_EQ(found.other_tokens, family.texts.predictions());
      for (const SteerDose& dose : found.doses) {
        SiteValues values;
        values.add(direction.times(static_cast<float>(dose.strength)));
        double sum = 0;
        for (const double score : scores_with(family, &values)) sum += score;
        EXPECT_NEAR(*dose.loss, -sum / static_cast<double>(found.other_tokens), 2e-5);
        EXPECT_DOUBLE_EQ(dose.perplexity(), std::exp(*dose.loss));
      }
      EXPECT_GT(std::abs(*found.doses[1].loss - *found.doses[0].loss), 1e-3);
    }
  }
}

TEST(Steer, WithoutStrengthIsTheModelAsItIsEdited) {
  const ScoredModel model(test::causal_folder());
  const SteerDirection direction = direction_for(*model.folder().model, ".0.output");
  SiteValues muted;
  muted.mute("decoder.0.self_attention.*");
  const SteerQuestion question{.texts = {"two dogs see the"}, .answers = {"park"}};
  const auto answer = [&](Sites* sites, double strength) {
    return heads_steer(model, direction, question, nullptr,
                       {.direction = {.sites = sites}, .strengths = {strength}})
        .doses[0]
        .log_probabilities[0][0];
  };
  EXPECT_NE(answer(&muted, 0), answer(nullptr, 0));
  EXPECT_NE(answer(&muted, 1), answer(nullptr, 1));
  SiteValues added, second;
  added.add(direction.times(1));
  EXPECT_NEAR(answer(&added, 1), answer(nullptr, 2), 2e-5);
  second.replace({.site = "decoder.0.output", .sequence = 1, .numbers = Tensor(1, direction.numbers.cols())});
  EXPECT_THAT([&] { answer(&second, 1); },
              ThrowsMessage<UsageError>(HasSubstr("there is no sequence 1; there is 1")));
}

TEST(Steer, SaysOnceThatAWordHasSeveralTokens) {
  const ScoredModel model = load_scored_model(golden_of_importance("generate/gpt2"));
  const SteerDirection direction = direction_for(*model.folder().model, ".0.output");
  std::vector<std::string> told;
  SteerOptions options{.strengths = {1}};
  options.direction.remark = [&](const std::string& line) { told.push_back(line); };
  const SteerReport found = heads_steer(
      model, direction, {.texts = {"two dogs", "a cat"}, .answers = {"elephants"}}, nullptr, options);
  EXPECT_GT(found.texts[0].answers[0].tokens, 1);
  EXPECT_THAT(told, testing::ElementsAre(HasSubstr("what counts")));
}

TEST(Steer, SaysInOneLineWhatIsWrong) {
  const ScoredModel model(test::causal_folder());
  const SteerDirection direction = direction_for(*model.folder().model, ".0.output");
  const auto refused = [&](const SteerQuestion& question, const SteerOptions& options, const char* words) {
    EXPECT_THAT([&] { heads_steer(model, direction, question, nullptr, options); },
                ThrowsMessage<UsageError>(HasSubstr(words)))
        << words;
  };
  const SteerQuestion question{.texts = {"two dogs"}, .answers = {"park"}};
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  refused({}, {}, "nothing is measured; give texts and answers, or other text, or both");
  refused({.texts = {"two dogs"}}, {}, "`answers`: there are none");
  refused(question, {.strengths = {}}, "`strengths`: there are none");
  for (const double wrong : {kInfinite, -kInfinite, std::nan(""), 1e39})
    refused(question, {.strengths = {1, wrong}}, "`strengths`: expected a number from -3.4");
  refused(question, {.max_batch_tokens = 0}, "`max_batch_tokens`: expected");
  refused({.texts = {"two dogs"}, .answers = {"park"}, .prefix = "a"}, {},
          "`prefix`: this model translates nothing");
  refused({.texts = {"two dogs"}, .answers = {"aardvark"}}, {},
          "`answers`: the tokenizer does not know 'aardvark'");
  refused({.texts = {"two dogs", ""}, .answers = {"park"}}, {}, "text 2 has no tokens");
  SteerDirection large = direction, narrow = direction;
  large.numbers(0, 0) = 3e38f;
  EXPECT_THAT(
      [&] { heads_steer(model, large, question, nullptr); },
      ThrowsMessage<UsageError>(HasSubstr("-4, the strength, times 3e+38, a number of row 0, is too large")));
  narrow.numbers = Tensor(1, 5);
  EXPECT_THAT([&] { heads_steer(model, narrow, question, nullptr); },
              ThrowsMessage<UsageError>(
                  HasSubstr("the direction has 5 numbers, and 'decoder.0.output' of this model ")));
  TextCorpus none({.sources = {"", " "}});
  EXPECT_THROW(heads_steer(model, direction, {}, &none), FormatError);
  const ScoredModel masked(test::bert_folder());
  EXPECT_THAT(
      [&] { heads_steer(masked, direction_for(*masked.folder().model, ".0.output"), question, nullptr); },
      ThrowsMessage<UsageError>(HasSubstr("text 1 has 0 masks; write [MASK] once")));
  for (const char* other : {"labels/bert_pairs", "sentences/modes"}) {
    const ScoredModel no_words = load_scored_model(golden_of_importance(other));
    EXPECT_THAT(
        [&] {
          heads_steer(no_words, direction_for(*no_words.folder().model, ".0.output"), question, nullptr);
        },
        ThrowsMessage<UsageError>(HasSubstr("predicts no words")));
  }
}

}  // namespace
}  // namespace mh
