// The logits are a site of searches and scores, too: who keeps them changes nothing, and who replaces them decides which
// words come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/evaluate/perplexity.h"
#include "multihead/evaluate/score.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

constexpr const char* kLogits = "decoder.logits";

/// Logits that leave one token, at this position.
SiteReplacement only(int32_t token, int32_t position, int32_t vocabulary) {
  Tensor numbers(1, vocabulary);
  numbers(0, token) = 60;
  return {.site = kLogits, .position = position, .numbers = std::move(numbers)};
}

class LogitsOfATranslator : public testing::Test {
 protected:
  LogitsOfATranslator() {
    model.initialise(7);
    sharpen(model, 1.7f);
  }
  EncoderDecoder model{small_shape().config()};
  const std::vector<std::vector<int32_t>> sources = random_sources(3, {2, 13, 5, 3});
  const TranslateOptions options{.search = {.beam_size = 3, .n_best = 2, .max_length = 9}};
  SiteValues values;
};

TEST_F(LogitsOfATranslator, MayBeSeenWithoutChangingASearch) {
  for (const auto& prefixes :
       {std::vector<std::vector<int32_t>>(), std::vector<std::vector<int32_t>>{{}, {5, 9}, {7}, {}}}) {
    const auto expected = translate(model, sources, options, prefixes);
    values.keep(kLogits);
    TranslateOptions asked = options;
    asked.sites = &values;
    const auto found = translate(model, sources, asked, prefixes);
    for (size_t s = 0; s < sources.size(); ++s) {
      ASSERT_EQ(found[s].size(), expected[s].size());
      for (size_t n = 0; n < found[s].size(); ++n) {
        EXPECT_EQ(found[s][n].tokens, expected[s][n].tokens);
        EXPECT_NEAR(found[s][n].log_probability, expected[s][n].log_probability, 1e-4);
      }
    }
    const KeptValue& kept = values.kept(kLogits);  // of the last step
    EXPECT_EQ(kept.value.cols(), 37);
    EXPECT_EQ(kept.positions.size(), static_cast<size_t>(kept.value.rows()));
  }
}

TEST_F(LogitsOfATranslator, DecideWhichWordEveryHypothesisHas) {
  values.replace(only(23, 1, 37));
  TranslateOptions asked = options;
  asked.sites = &values;
  for (const auto& hypotheses : translate(model, sources, asked)) {
    for (const Hypothesis& hypothesis : hypotheses) {
      if (hypothesis.tokens.empty()) continue;  // it ended at once
      ASSERT_GE(hypothesis.tokens.size(), 2u);
      EXPECT_EQ(hypothesis.tokens[1], 23);
      EXPECT_NEAR(hypothesis.log_probabilities[1], 0, 1e-6);
    }
  }
}

TEST_F(LogitsOfATranslator, DecideTheScoresOfTheirRows) {
  const std::vector<std::vector<int32_t>> targets{{4, 23, 5}, {8}, {6, 23}, {}};
  const auto before = score(model, sources, targets);
  values.replace(only(23, 1, 37));
  const auto found = score(model, sources, targets, {.sites = &values});
  for (size_t s = 0; s < targets.size(); ++s) {
    for (size_t i = 0; i < found[s].size(); ++i) {
      const float expected = i != 1 ? before[s][i] : targets[s].size() > 1 ? 0.0f : -60.0f;
      EXPECT_NEAR(found[s][i], expected, 1e-4) << s << " " << i;
    }
  }
}

class LogitsOfACausalModel : public testing::Test {
 protected:
  std::vector<Generated> with_sites(NextToken next_token, const std::vector<std::vector<int32_t>>& prompts) {
    GenerateOptions options{.next_token = next_token, .max_new_tokens = 4, .sites = &values};
    if (next_token == NextToken::kBeam) options.beam_size = 3;
    return generate(model, prompts, options);
  }

  const ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
  const int32_t vocabulary = model.facts().vocabulary;
  SiteValues values;
};

// The row of position p predicts the token of position p + 1: the last of a prompt the first new one.
TEST_F(LogitsOfACausalModel, DecideWhichWordComesNext) {
  const std::vector<std::vector<int32_t>> prompts{{7, 3, 5}, {9}};
  values.replace(only(31, 2, vocabulary));
  for (const NextToken next : {NextToken::kGreedy, NextToken::kSample, NextToken::kBeam}) {
    const std::vector<Generated> found = with_sites(next, prompts);
    ASSERT_FALSE(found[0].tokens.empty());
    EXPECT_EQ(found[0].tokens[0], 31);
    EXPECT_NEAR(found[0].log_probabilities[0], 0, 1e-6);
    if (found[1].tokens.size() > 2) {
      EXPECT_EQ(found[1].tokens[2], 31);
    }
  }
}

TEST_F(LogitsOfACausalModel, DecideTheScoresInEveryWindow) {
  const std::vector<std::vector<int32_t>> texts{{7, 3, 5, 31, 2, 8, 9, 10, 31, 4, 3, 3, 5}, {4, 9}};
  const WindowOptions options{.context = 7, .stride = 4};
  const auto before = score_windows(model, texts, options);
  values.keep(kLogits);
  WindowOptions asked = options;
  asked.sites = &values;
  const auto same = score_windows(model, texts, asked);
  values.replace(only(31, 2, vocabulary));
  const auto found = score_windows(model, texts, asked);
  for (size_t t = 0; t < texts.size(); ++t) {
    for (size_t i = 0; i < before[t].size(); ++i) {
      EXPECT_NEAR(same[t][i], before[t][i], 1e-4) << t << " " << i;
      // Positions are those of the text: window 0 alone has position 2 among the rows that are scored.
      const bool decided = t == 0 && i == 2;
      const float expected = !decided ? before[t][i] : texts[t][i + 1] == 31 ? 0.0f : -60.0f;
      EXPECT_NEAR(found[t][i], expected, 1e-4) << t << " " << i;
    }
  }
}

}  // namespace
}  // namespace mh
