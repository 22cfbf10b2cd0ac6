// Rules in place of heads' weights while text is made: each token's probability is that of a whole pass without a cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/evaluate/perplexity.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/generate/naive_search.h"
#include "tests/support/places.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::FloatNear;
using testing::Pointwise;

SiteValues ruled(const std::vector<std::pair<std::string, WeightRule>>& rules) {
  SiteValues values;
  for (const auto& [heads, rule] : rules) values.replace_weights(heads, rule);
  return values;
}

TEST(WeightRulesOfATranslator, AreThoseOfASearchWithoutCaches) {
  EncoderDecoder model(small_shape().config());
  model.initialise(11);
  sharpen(model, 1.7f);
  add_to_logit(model, kEnd, 2.5f);
  const auto sources = random_sources(5, {7, 2, 11, 1, 5, 3});
  const SearchOptions search{.beam_size = 3, .n_best = 3, .max_length = 9};
  const auto whole = translate(model, sources, {.search = search});
  for (const auto& [name, rule] : kWeightRuleNames) {
    for (const auto& rules :
         {std::vector<std::pair<std::string, WeightRule>>{{"decoder.*.self_attention.*", rule}},
          {{"*.cross_attention.*", rule}},
          {{"*.1", rule}, {"decoder.0.self_attention.3", WeightRule::kPrevious}}}) {
      SCOPED_TRACE(testing::Message() << name << " " << rules[0].first);
      SiteValues sites = ruled(rules);
      const auto found = translate(model, sources, {.search = search, .sites = &sites});
      double change = 0;
      for (size_t s = 0; s < sources.size(); ++s) {
        const auto expected = naive_search(model, sources[s], search, {}, &sites);
        ASSERT_EQ(found[s].size(), expected.size());
        change += std::abs(found[s][0].log_probability - whole[s][0].log_probability);
        for (size_t n = 0; n < expected.size(); ++n) {
          EXPECT_EQ(found[s][n].tokens, expected[n].tokens);
          EXPECT_THAT(found[s][n].log_probabilities,
                      Pointwise(FloatNear(1e-4f), expected[n].log_probabilities));
        }
      }
      EXPECT_GT(change, 1e-2);
    }
  }
}

/// Folders whose heads share keys and values, have a window, and are quantised.
class WeightRulesOfACausalModel : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Folders, WeightRulesOfACausalModel,
                         testing::Values("generate/gpt2", "mistral/window", "gguf/tied_quantised.gguf"));

TEST_P(WeightRulesOfACausalModel, AreThoseOfAWholePass) {
  const ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / GetParam());
  const LanguageModel& model = folder.language_model();
  std::vector<std::vector<int32_t>> prompts;
  for (const int32_t length : {1, 5, 23, 2}) {  // 23: longer than the window
    auto& prompt = prompts.emplace_back();
    for (int32_t i = 0; i < length; ++i)
      prompt.push_back(3 + (7 * i + 5 * length) % (model.facts().vocabulary - 3));
  }
  const auto whole = generate(model, prompts, {.next_token = NextToken::kGreedy, .max_new_tokens = 17});
  for (const auto& [name, rule] : kWeightRuleNames) {
    SCOPED_TRACE(name);
    SiteValues sites = ruled({{"decoder.1.self_attention.*", rule}, {"decoder.0.self_attention.1", rule}});
    const auto found =
        generate(model, prompts, {.next_token = NextToken::kGreedy, .max_new_tokens = 17, .sites = &sites});
    double change = 0;
    size_t tokens = 0;
    for (size_t p = 0; p < prompts.size(); ++p) {
      std::vector<int32_t> text = prompts[p];
      text.insert(text.end(), found[p].tokens.begin(), found[p].tokens.end());
      const std::vector<float> scores = score_windows(model, std::span(&text, 1), {.sites = &sites}).at(0);
      ASSERT_EQ(scores.size(), text.size() - 1);
      tokens += found[p].tokens.size();
      for (size_t i = 0; i < found[p].tokens.size(); ++i)
        EXPECT_NEAR(found[p].log_probabilities[i], scores[prompts[p].size() - 1 + i], 1e-4) << p << " " << i;
      change += std::abs(found[p].log_probability - whole[p].log_probability);
    }
    EXPECT_GT(tokens, 20u);
    EXPECT_GT(change, 1e-2);
  }
}

}  // namespace
}  // namespace mh
