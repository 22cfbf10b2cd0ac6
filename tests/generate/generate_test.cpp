// Text from a causal model: what transformers' generate() says with the same small GPT-2, and what must not
// matter.
#include "multihead/generate/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/prompt_cache.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/vocabulary_head.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class GenerateTest : public testing::Test {
 protected:
  static constexpr int32_t kSecondEnd = 2;

  std::vector<std::vector<int32_t>> prompts() const {
    std::vector<std::vector<int32_t>> all;
    for (const int length : {1, 7, 2, 31, 13, 1, 5}) {
      auto& prompt = all.emplace_back();
      for (int i = 0; i < length; ++i)
        prompt.push_back((37 * i + 11 * length + 3) % model.facts().vocabulary);
    }
    return all;
  }

  Generated continued(const std::vector<int32_t>& prompt, const GenerateOptions& options) const {
    return generate(model, std::span(&prompt, 1), options).at(0);
  }

  ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
};

TEST_F(GenerateTest, GreedyAndBeamSearchSayWhatTransformersSays) {
  int ended = 0;
  for (const auto& expected : test::generate_golden()["generated"]) {
    const auto& given = expected["options"];
    if (given.contains("stop_strings")) continue;  // of text: see generate_text_test.cpp
    SCOPED_TRACE(expected["prompt"].get<std::string>() + " " + given.dump());
    const bool beam = given.contains("num_beams");
    GenerateOptions options{.next_token = beam ? NextToken::kBeam : NextToken::kGreedy,
                            .beam_size = given.value("num_beams", 1),
                            .length_penalty = {.alpha = given.value("length_penalty", 0.0)},
                            .max_new_tokens = given["max_new_tokens"],
                            .end_tokens = {kSecondEnd}};
    options.filters.repetition_penalty = given.value("repetition_penalty", 1.0);
    const std::vector<std::vector<int32_t>> prompt{expected["prompt_ids"]};
    const Generated found = generate(model, prompt, options).at(0);
    std::vector<int32_t> tokens = expected["tokens"];
    const bool ends = tokens.back() == kSecondEnd;
    ended += ends;
    if (ends) tokens.pop_back();
    EXPECT_EQ(found.tokens, tokens);
    EXPECT_EQ(found.end, ends ? GenerationEnd::kEndToken : GenerationEnd::kMaxNewTokens);
    const std::vector<double> log_probabilities = expected["log_probabilities"];
    double sum = 0;
    for (const double p : log_probabilities) sum += p;
    EXPECT_NEAR(found.log_probability, sum, 1e-3);
    ASSERT_EQ(found.log_probabilities.size(), log_probabilities.size());
    for (size_t i = 0; i < log_probabilities.size(); ++i)
      EXPECT_NEAR(found.log_probabilities[i], log_probabilities[i], 1e-4);
  }
  EXPECT_GE(ended, 2);
}

TEST_F(GenerateTest, NeitherBatchNorOrderNorThreadsMatter) {
  const auto all = prompts();
  const int threads = thread_count();
  for (const NextToken next : {NextToken::kSample, NextToken::kGreedy, NextToken::kBeam}) {
    GenerateOptions options{.next_token = next, .beam_size = 3, .seed = 5, .max_new_tokens = 23};
    if (next == NextToken::kSample) options.filters = {.temperature = 1.3, .top_k = 150, .top_p = 0.97};
    const auto expected = generate(model, all, options);
    for (const int use : {1, 3}) {
      set_thread_count(use);
      for (const int64_t batch_tokens : {1, 61}) {
        options.max_batch_tokens = batch_tokens;
        const auto found = generate(model, all, options);
        for (size_t n = 0; n < all.size(); ++n) {
          EXPECT_EQ(found[n].tokens, expected[n].tokens) << n;
          EXPECT_NEAR(found[n].log_probability, expected[n].log_probability, 1e-4);
        }
      }
    }
    set_thread_count(threads);
    // Each prompt alone, under its number.
    for (size_t n = 0; n < all.size(); ++n) {
      options.first_number = n;
      EXPECT_EQ(generate(model, std::span(all).subspan(n, 1), options)[0].tokens, expected[n].tokens) << n;
    }
  }
}

TEST_F(GenerateTest, TheSeedAndTheNumberDecide) {
  const std::vector<std::vector<int32_t>> same(3, {5, 17});
  const auto tokens = [&](uint64_t seed) {
    std::vector<std::vector<int32_t>> found;
    for (const auto& one : generate(model, same, {.seed = seed, .max_new_tokens = 11}))
      found.push_back(one.tokens);
    return found;
  };
  const auto first = tokens(1);
  EXPECT_EQ(tokens(1), first);
  EXPECT_NE(tokens(2), first);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[1], first[2]);
}

TEST_F(GenerateTest, SamplesComeAsOftenAsTheModelSays) {
  constexpr int kDraws = 4001;
  const std::vector<std::vector<int32_t>> same(kDraws, {5, 17});
  std::map<int32_t, int> count;
  std::map<int32_t, double> log_probability;
  for (const auto& one : generate(model, same, {.seed = 3, .max_new_tokens = 1})) {
    const int32_t token = one.end == GenerationEnd::kEndToken ? model.facts().eos_id : one.tokens.at(0);
    ++count[token];
    log_probability[token] = static_cast<double>(one.log_probabilities.at(0));
  }
  // Tokens that are rarer than 5 in all draws are one class.
  double chi_square = 0, rest = kDraws, rest_count = kDraws;
  int classes = 0;
  for (const auto& [token, times] : count) {
    const double expected = kDraws * std::exp(log_probability[token]);
    if (expected < 5) continue;
    chi_square += (times - expected) * (times - expected) / expected;
    rest -= expected;
    rest_count -= times;
    ++classes;
  }
  chi_square += (rest_count - rest) * (rest_count - rest) / rest;
  ASSERT_GT(classes, 10);
  EXPECT_LT(chi_square, classes + 3.1 * std::sqrt(2.0 * classes));
}

TEST_F(GenerateTest, ATextEndsAtThePositionsOfTheModel) {
  const auto all = prompts();
  const int32_t positions = model.facts().max_positions;
  for (const NextToken next : {NextToken::kSample, NextToken::kBeam}) {
    int full = 0;
    const auto found = generate(model, all, {.next_token = next, .beam_size = 2, .max_new_tokens = 1000});
    for (size_t n = 0; n < all.size(); ++n) {
      if (found[n].end == GenerationEnd::kEndToken) continue;
      EXPECT_EQ(found[n].end, GenerationEnd::kMaxPositions);
      EXPECT_EQ(all[n].size() + found[n].tokens.size(), static_cast<size_t>(positions));
      ++full;
    }
    EXPECT_GT(full, 0);
  }
  const std::vector<std::vector<int32_t>> longest{
      std::vector<int32_t>(static_cast<size_t>(positions) - 1, 7)};
  EXPECT_LE(generate(model, longest)[0].tokens.size(), 1u);
}

TEST_F(GenerateTest, TheCallerMayEndAText) {
  const auto all = prompts();
  GenerateOptions options{.max_new_tokens = 9};
  const auto whole = generate(model, all, options);
  std::vector<std::vector<int32_t>> heard(all.size());
  options.goes_on = [&](size_t n, int32_t token) {
    heard[n].push_back(token);
    return heard[n].size() < n + 1;
  };
  const auto found = generate(model, all, options);
  for (size_t n = 0; n < all.size(); ++n) {
    const size_t length = std::min(n + 1, whole[n].tokens.size());
    EXPECT_EQ(heard[n], std::vector<int32_t>(whole[n].tokens.begin(),
                                             whole[n].tokens.begin() + static_cast<std::ptrdiff_t>(length)));
    EXPECT_EQ(found[n].tokens, heard[n]);
    if (whole[n].tokens.size() > n) {
      EXPECT_EQ(found[n].end, GenerationEnd::kStopped);
    }
  }
}

TEST_F(GenerateTest, SuppressedTokensNeverComeAndMutedHeadsMatter) {
  const auto all = prompts();
  GenerateOptions options{.next_token = NextToken::kGreedy, .max_new_tokens = 9};
  const auto before = generate(model, all, options);
  options.filters.suppressed = before[1].tokens;
  for (const auto& one : generate(model, all, options)) {
    for (const int32_t token : one.tokens)
      EXPECT_EQ(std::count(options.filters.suppressed.begin(), options.filters.suppressed.end(), token), 0);
  }
  options.filters.suppressed.clear();
  SiteValues muted;
  muted.mute("decoder.0.self_attention.1");
  options.sites = &muted;
  EXPECT_NE(generate(model, all, options)[3].log_probability, before[3].log_probability);
}

// Turns of a chat: each prompt is what came before, and something new.
TEST_F(GenerateTest, ACacheOfTheLastPromptChangesNothing) {
  for (const NextToken next : {NextToken::kGreedy, NextToken::kSample}) {
    PromptCache cache;
    GenerateOptions options{.next_token = next, .seed = 7, .max_new_tokens = 5};
    options.end_tokens = {kSecondEnd};
    std::vector<int32_t> prompt{3, 17, 40, 9};
    for (const std::vector<int32_t>& turn : {std::vector<int32_t>{}, {5, 88, 41}, {12}, {60, 61}}) {
      prompt.insert(prompt.end(), turn.begin(), turn.end());
      options.prompt_cache = nullptr;
      const Generated fresh = continued(prompt, options);
      options.prompt_cache = &cache;
      const Generated found = continued(prompt, options);
      EXPECT_EQ(found.tokens, fresh.tokens);
      EXPECT_EQ(found.end, fresh.end);
      for (size_t i = 0; i < fresh.log_probabilities.size(); ++i)
        EXPECT_NEAR(found.log_probabilities[i], fresh.log_probabilities[i], 1e-4);
      // It holds all but a last token that nothing was predicted from.
      std::vector<int32_t> read = prompt;
      read.insert(read.end(), found.tokens.begin(), found.tokens.end());
      if (found.end != GenerationEnd::kEndToken) read.pop_back();
      EXPECT_EQ(cache.tokens, read);
      prompt.insert(prompt.end(), found.tokens.begin(), found.tokens.end());
    }
    // Another beginning: what is no more the same is read again. The same prompt again: its last token is.
    for (const std::vector<int32_t>& other :
         {std::vector<int32_t>{3, 17, 41}, {3, 17, 41}, {3, 17}, {8, 17}, {1}}) {
      options.prompt_cache = nullptr;
      const Generated fresh = continued(other, options);
      options.prompt_cache = &cache;
      EXPECT_EQ(continued(other, options).tokens, fresh.tokens);
    }
  }
}

TEST_F(GenerateTest, WhatTheCacheHoldsIsNotReadAgain) {
  GenerateOptions options{.next_token = NextToken::kGreedy, .max_new_tokens = 3};
  PromptCache right, wrong;
  const std::vector<int32_t> prompt{3, 17, 40, 9, 21, 33, 57, 2};
  options.prompt_cache = &wrong;
  continued({80, 81, 82, 83, 84, 85, 86, 87}, options);
  wrong.tokens = prompt;  // which it has not read
  const Generated misled = continued(prompt, options);
  options.prompt_cache = &right;
  const Generated found = continued(prompt, options);
  EXPECT_GT(std::abs(misled.log_probabilities[0] - found.log_probabilities[0]), 1e-3f);
}

TEST_F(GenerateTest, RefusesWhatCannotBe) {
  const auto expect_refused = [&](std::vector<std::vector<int32_t>> given, const GenerateOptions& options,
                                  const char* what) {
    EXPECT_THAT([&] { generate(model, given, options); }, ThrowsMessage<Error>(HasSubstr(what)));
  };
  expect_refused({{}}, {}, "prompt");
  expect_refused({{1}, {999}}, {}, "999");
  expect_refused({std::vector<int32_t>(67, 1)}, {}, "67");
  expect_refused({{1}}, {.max_new_tokens = 0}, "`max_new_tokens`");
  expect_refused({{1}}, {.max_batch_tokens = 0}, "1");
  expect_refused({{1}}, {.next_token = NextToken::kGreedy, .filters = {.top_k = 3}}, "sampling");
  expect_refused({{1}}, {.next_token = NextToken::kBeam, .filters = {.repetition_penalty = 2}}, "beam");
  expect_refused({{1}}, {.next_token = NextToken::kBeam, .beam_size = 0}, "`beam_size`: expected");
  expect_refused({{1}}, {.stops = [](size_t, std::span<const int32_t>) { return true; }}, "`stops`");
  expect_refused({{1}}, {.next_token = NextToken::kBeam, .beam_size = 255, .end_tokens = {2}}, "256");
  expect_refused({{1}}, {.end_tokens = {-3}}, "-3");
  PromptCache cache;
  expect_refused({{1}, {2}}, {.prompt_cache = &cache}, "`prompt_cache` is for one prompt, got 2");
  expect_refused({{1}}, {.next_token = NextToken::kBeam, .prompt_cache = &cache},
                 "`prompt_cache` is for sampling");
  EncoderDecoder translator(small_shape().config());
  EXPECT_THAT([&] { generate(translator, std::vector<std::vector<int32_t>>{{1}}); },
              ThrowsMessage<UsageError>(HasSubstr("translates")));
}

}  // namespace
}  // namespace mh
