// Texts and translations over a cache that keeps bfloat16: those of one that keeps float32 whose keys and values were rounded
// before, with any search and number of threads.
#include <gtest/gtest.h>

#include "multihead/base/thread_pool.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/prompt_cache.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/round_keys.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

class CacheTypeTest : public testing::Test {
 protected:
  Generated continued(const std::vector<int32_t>& prompt, const GenerateOptions& options) const {
    return generate(model, std::span(&prompt, 1), options).at(0);
  }

  ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
  const std::vector<std::vector<int32_t>> prompts{{3, 17, 40, 9}, {5, 88, 41, 12, 60, 61, 3}, {7}};
};

TEST_F(CacheTypeTest, EverySearchReadsRoundedKeysAndValues) {
  test::RoundKeys rounded;
  int changed = 0;
  const int before = thread_count();
  for (const NextToken next : {NextToken::kGreedy, NextToken::kSample, NextToken::kBeam}) {
    GenerateOptions options{.next_token = next, .beam_size = 3, .seed = 5, .max_new_tokens = 23};
    set_thread_count(1);
    const auto exact = generate(model, prompts, options);
    options.sites = &rounded;
    const auto expected = generate(model, prompts, options);
    options.sites = nullptr;
    options.cache = CacheType::kBFloat16;
    for (const int threads : {1, 3}) {
      set_thread_count(threads);
      const auto found = generate(model, prompts, options);
      for (size_t i = 0; i < prompts.size(); ++i) {
        EXPECT_EQ(found[i].tokens, expected[i].tokens);
        EXPECT_EQ(found[i].log_probabilities, expected[i].log_probabilities);
        changed += found[i].log_probability != exact[i].log_probability;
      }
    }
  }
  set_thread_count(before);
  EXPECT_GT(changed, 0);
}

// Rules for weights take the path that reads no bfloat16.
TEST_F(CacheTypeTest, HeadsCanBeChanged) {
  test::RoundKeys rounded;
  SiteValues uniform;
  uniform.replace_weights("decoder.0.self_attention.1", WeightRule::kUniform);
  SitesInTurn both(&rounded, uniform);
  GenerateOptions options{.next_token = NextToken::kGreedy, .max_new_tokens = 11, .sites = &both};
  const auto expected = generate(model, prompts, options);
  options.sites = &uniform;
  const auto exact = generate(model, prompts, options);
  options.cache = CacheType::kBFloat16;
  const auto found = generate(model, prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(found[i].tokens, expected[i].tokens);
    EXPECT_EQ(found[i].log_probabilities, expected[i].log_probabilities);
    EXPECT_NE(found[i].log_probabilities, exact[i].log_probabilities);
  }
}

// Turns of a chat: each prompt is what came before, and something new.
TEST_F(CacheTypeTest, ATurnReadsOnlyWhatIsNew) {
  PromptCache cache;
  GenerateOptions options{
      .next_token = NextToken::kGreedy, .max_new_tokens = 5, .cache = CacheType::kBFloat16};
  std::vector<int32_t> prompt{3, 17, 40, 9};
  for (const std::vector<int32_t>& turn : {std::vector<int32_t>{}, {5, 88, 41}, {12}, {60, 61}}) {
    prompt.insert(prompt.end(), turn.begin(), turn.end());
    options.prompt_cache = nullptr;
    const Generated fresh = continued(prompt, options);
    options.prompt_cache = &cache;
    const Generated found = continued(prompt, options);
    EXPECT_EQ(found.tokens, fresh.tokens);
    for (size_t i = 0; i < fresh.log_probabilities.size(); ++i)
      EXPECT_NEAR(found.log_probabilities[i], fresh.log_probabilities[i], 1e-2);
    EXPECT_EQ(cache.keys_and_values.type(), CacheType::kBFloat16);
    EXPECT_EQ(cache.keys_and_values.length(0), std::ssize(cache.tokens));
    prompt.insert(prompt.end(), found.tokens.begin(), found.tokens.end());
  }
}

TEST_F(CacheTypeTest, WhatIsKeptAsAnotherTypeIsReadAgain) {
  const std::vector<int32_t> prompt{3, 17, 40, 9, 21, 33};
  PromptCache cache;
  for (const CacheType type : {CacheType::kFloat32, CacheType::kBFloat16, CacheType::kFloat32}) {
    GenerateOptions options{.next_token = NextToken::kGreedy, .max_new_tokens = 3, .cache = type};
    const Generated fresh = continued(prompt, options);
    options.prompt_cache = &cache;
    EXPECT_EQ(continued(prompt, options).log_probabilities, fresh.log_probabilities);
    EXPECT_EQ(cache.keys_and_values.type(), type);
  }
}

TEST(CacheTypeOfTranslations, RoundsTheSourcesKeysToo) {
  EncoderDecoder model(small_shape().config());
  model.initialise(7);
  sharpen(model, 1.7f);
  add_to_logit(model, kEnd, 2);
  const auto sources = random_sources(3, {2, 13, 5, 3, 11, 7, 5});
  test::RoundKeys rounded;
  TranslateOptions options{.search = {.beam_size = 3, .max_length = 11}, .max_batch_tokens = 19};
  Translator translator(model);
  const auto exact = translator.translate(sources, options);
  options.sites = &rounded;
  const auto expected = translator.translate(sources, options);
  options.sites = nullptr;
  options.cache = CacheType::kBFloat16;
  const auto found = translator.translate(sources, options);
  int changed = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    EXPECT_EQ(found[s].at(0).tokens, expected[s].at(0).tokens);
    EXPECT_EQ(found[s].at(0).log_probability, expected[s].at(0).log_probability);
    changed += found[s].at(0).log_probability != exact[s].at(0).log_probability;
  }
  EXPECT_GT(changed, 3);
  options.cache = CacheType::kFloat32;  // the same translator, which had the other type
  EXPECT_EQ(translator.translate(sources, options)[0].at(0).log_probability, exact[0].at(0).log_probability);
}

}  // namespace
}  // namespace mh
