// What is put at a site goes by the number of the source, prompt or text in the caller's list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/evaluate/perplexity.h"
#include "multihead/evaluate/score.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

SiteReplacement put_in(const std::string& site, int32_t sequence, int64_t columns) {
  SiteReplacement one{.site = site, .sequence = sequence, .numbers = Tensor(1, columns)};
  for (int64_t c = 0; c < columns; ++c) one.numbers(0, c) = 1.5f - 0.3f * static_cast<float>(c % 7);
  return one;
}

class EditsOfSources : public testing::Test {
 protected:
  EditsOfSources() {
    model.initialise(11);
    sharpen(model, 1.7f);
    add_to_logit(model, kEnd, 2.0f);
  }
  static constexpr int64_t kBatches[] = {1, 9, 100'000};

  EncoderDecoder model{small_shape().config()};
  const std::vector<std::vector<int32_t>> sources = random_sources(5, {3, 11, 2, 7, 13, 5, 3});
};

TEST_F(EditsOfSources, ChangeThatTranslationAlone) {
  const SearchOptions search{.beam_size = 3, .n_best = 2, .max_length = 9};
  const auto whole = translate(model, sources, {.search = search});
  int changed = 0;
  for (const char* site :
       {"decoder.1.self_attention.heads", "encoder.0.output", "decoder.0.cross_attention.keys"}) {
    for (const size_t edited : {0u, 2u, 5u}) {
      SiteValues of_one;
      of_one.replace(put_in(site, 0, 20));
      const auto expected =
          translate(model, std::span(&sources[edited], 1), {.search = search, .sites = &of_one})[0];
      for (const int64_t tokens : kBatches) {
        SiteValues values;
        values.replace(put_in(site, static_cast<int32_t>(edited), 20));
        const auto found =
            translate(model, sources, {.search = search, .max_batch_tokens = tokens, .sites = &values});
        for (size_t s = 0; s < sources.size(); ++s) {
          const auto& right = s == edited ? expected : whole[s];
          ASSERT_EQ(found[s].size(), right.size());
          for (size_t n = 0; n < right.size(); ++n) {
            EXPECT_EQ(found[s][n].tokens, right[n].tokens) << site << " " << edited << " " << s;
            EXPECT_NEAR(found[s][n].log_probability, right[n].log_probability, 1e-4);
          }
        }
      }
      changed += std::abs(expected[0].log_probability - whole[edited][0].log_probability) > 1e-3 ? 1 : 0;
    }
  }
  EXPECT_GE(changed, 7);  // of nine
}

TEST_F(EditsOfSources, ReachTheAlignmentOfTheirTranslation) {
  const AlignOptions align{.layer = 1};
  const TranslateOptions options{.search = {.beam_size = 2, .n_best = 2, .max_length = 7}, .align = align};
  for (const size_t edited : {1u, 3u}) {
    SiteValues of_one, values;
    of_one.replace(put_in("decoder.1.cross_attention.queries", 0, 20));
    values.replace(put_in("decoder.1.cross_attention.queries", static_cast<int32_t>(edited), 20));
    TranslateOptions alone = options, all = options;
    alone.sites = &of_one;
    all.sites = &values;
    const auto expected = translate(model, std::span(&sources[edited], 1), alone)[0];
    const auto found = translate(model, sources, all)[edited];
    ASSERT_EQ(found.size(), expected.size());
    for (size_t n = 0; n < found.size(); ++n) EXPECT_EQ(found[n].alignment, expected[n].alignment);
  }
}

TEST_F(EditsOfSources, ChangeThatScoreAlone) {
  const std::vector<std::vector<int32_t>> targets{{4, 23, 5}, {8},  {6, 23, 7, 9, 4}, {},
                                                  {5, 5},     {11}, {12, 3}};
  const auto whole = score(model, sources, targets);
  for (const char* site : {"decoder.2.output", "encoder.1.input"}) {
    for (const size_t edited : {1u, 2u, 6u}) {
      SiteValues of_one;
      of_one.replace(put_in(site, 0, 20));
      const auto expected =
          score(model, std::span(&sources[edited], 1), std::span(&targets[edited], 1), {.sites = &of_one})[0];
      EXPECT_GT(std::abs(expected[0] - whole[edited][0]), 1e-3);
      for (const int64_t tokens : kBatches) {
        SiteValues values;
        values.replace(put_in(site, static_cast<int32_t>(edited), 20));
        const auto found = score(model, sources, targets, {.max_batch_tokens = tokens, .sites = &values});
        for (size_t s = 0; s < sources.size(); ++s) {
          const auto& right = s == edited ? expected : whole[s];
          for (size_t i = 0; i < right.size(); ++i) EXPECT_NEAR(found[s][i], right[i], 1e-4) << s << " " << i;
        }
      }
    }
  }
}

TEST_F(EditsOfSources, SayWhatTheListLacksAndWhatNothingRead) {
  SiteValues values;
  values.replace(put_in("decoder.1.output", 7, 20));
  EXPECT_THAT([&] { translate(model, sources, {.sites = &values}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no sequence 7; there are 7")));
  SiteValues late, rows;
  SiteReplacement behind = put_in("decoder.1.output", 2, 20);
  behind.position = 999;  // how long translations get is known at their end
  late.replace(std::move(behind));
  late.replace(put_in("decoder.2.output", 2, 20));
  translate(model, sources, {.sites = &late});
  EXPECT_THAT(
      late.unread(),
      testing::ElementsAre("nothing read what was put at site 'decoder.1.output', sequence 2, position 999"));
  rows.replace({.site = "decoder.1.output", .numbers = Tensor(13, 20)});
  EXPECT_THAT([&] { translate(model, sources, {.sites = &rows}); },
              ThrowsMessage<ShapeError>(HasSubstr("are [13,20], expected [1,20] for all rows")));
}

class EditsOfPrompts : public testing::Test {
 protected:
  const ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
  const int64_t width = model.facts().d_model;
  const std::vector<std::vector<int32_t>> prompts{{7, 3, 5}, {9}, {4, 4, 8, 2, 6}, {11, 5}, {3, 3, 3, 9}};
};

// Prompts end one after the other, so rows move up.
TEST_F(EditsOfPrompts, StayWithTheirPromptWhenOthersEnd) {
  for (const NextToken next : {NextToken::kGreedy, NextToken::kSample, NextToken::kBeam}) {
    for (const size_t edited : {1u, 2u, 4u}) {
      const auto options = [&](Sites* sites, size_t first) {
        GenerateOptions wanted{
            .next_token = next, .first_number = first, .max_new_tokens = 9, .sites = sites};
        if (next == NextToken::kBeam) {
          wanted.beam_size = 3;
          wanted.stops = [&, first](size_t n, std::span<const int32_t> tokens) {
            return tokens.size() > 2 * (n + first);
          };
        } else {
          wanted.goes_on = [&, first, seen = std::vector<size_t>(prompts.size())](size_t n, int32_t) mutable {
            return ++seen[n] <= 2 * (n + first);
          };
        }
        return wanted;
      };
      SiteValues of_one, values;
      of_one.replace(put_in("decoder.1.self_attention.heads", 0, width));
      values.replace(put_in("decoder.1.self_attention.heads", static_cast<int32_t>(edited), width));
      const auto whole = generate(model, prompts, options(nullptr, 0));
      const auto expected = generate(model, std::span(&prompts[edited], 1), options(&of_one, edited))[0];
      const auto found = generate(model, prompts, options(&values, 0));
      for (size_t p = 0; p < prompts.size(); ++p) {
        const Generated& right = p == edited ? expected : whole[p];
        EXPECT_EQ(found[p].tokens, right.tokens) << static_cast<int>(next) << " " << edited << " " << p;
        EXPECT_NEAR(found[p].log_probability, right.log_probability, 1e-4);
      }
      EXPECT_GT(std::abs(expected.log_probability - whole[edited].log_probability), 1e-3);
    }
  }
}

TEST_F(EditsOfPrompts, GoByTheTextOfAWindowAndByPositionsInIt) {
  const std::vector<std::vector<int32_t>> texts{
      {4, 9}, {7, 3, 5, 31, 2, 8, 9, 10, 31, 4, 3, 3, 5}, {6, 2, 8}};
  const auto scores = [&](SiteReplacement one, int64_t tokens) {
    SiteValues values;
    values.replace(std::move(one));
    return score_windows(model, texts,
                         {.context = 7, .stride = 4, .max_batch_tokens = tokens, .sites = &values});
  };
  const auto whole = score_windows(model, texts, {.context = 7, .stride = 4});
  int64_t rows = 0;
  for (const auto& text : texts) rows += std::ssize(text);
  for (const int64_t tokens : {1, 8, 1000}) {
    const auto found = scores(put_in("decoder.1.output", 1, width), tokens);
    // The second window has tokens 4 to 10, of which 7 to 10 are scored; the third one begins at token 8.
    SiteReplacement late = put_in("decoder.0.input", 1, width);
    late.position = 8;
    const auto at_eight = scores(std::move(late), tokens);
    for (size_t t = 0; t < texts.size(); ++t) {
      for (size_t i = 0; i < whole[t].size(); ++i) {
        EXPECT_EQ(std::abs(found[t][i] - whole[t][i]) > 1e-5, t == 1) << t << " " << i;
        EXPECT_EQ(std::abs(at_eight[t][i] - whole[t][i]) > 1e-5, t == 1 && i >= 8) << t << " " << i;
      }
    }
    const auto same = scores({.site = "decoder.1.output", .numbers = Tensor(1, width)}, tokens);
    const auto by_rows = scores({.site = "decoder.1.output", .numbers = Tensor(rows, width)}, tokens);
    for (size_t t = 0; t < texts.size(); ++t) {
      for (size_t i = 0; i < whole[t].size(); ++i) EXPECT_NEAR(by_rows[t][i], same[t][i], 1e-5);
    }
  }
}

}  // namespace
}  // namespace mh
