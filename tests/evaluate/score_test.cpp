#include "multihead/evaluate/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "multihead/base/error.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/generate/naive_search.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;

class ScoreTest : public testing::Test {
 protected:
  ScoreTest() : model(small_shape().config()) {
    model.initialise(19);
    sharpen(model, 1.5f);
    add_to_logit(model, kEnd, 3);
  }
  EncoderDecoder model;
};

TEST_F(ScoreTest, EachTokenGivenWhatIsBeforeIt) {
  const auto sources = random_sources(1, {5, 2, 7, 3});
  std::vector<std::vector<int32_t>> targets = random_sources(2, {3, 11, 1, 6});
  for (auto& target : targets) target.pop_back();  // one of them is empty then
  SiteValues sites;
  sites.mute("encoder.0.self_attention.1");
  for (Sites* changes : {static_cast<Sites*>(nullptr), static_cast<Sites*>(&sites)}) {
    for (const int64_t tokens : {1, 15, 1000}) {
      const auto found = score(model, sources, targets, {.max_batch_tokens = tokens, .sites = changes});
      ASSERT_EQ(found.size(), 4u);
      for (size_t s = 0; s < 4; ++s) {
        auto target = targets[s];
        target.push_back(kEnd);
        ASSERT_EQ(found[s].size(), target.size());
        for (size_t t = 0; t < target.size(); ++t) {
          const std::vector<int32_t> before(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(t));
          const auto next = next_log_probabilities(model, sources[s], before, changes);
          EXPECT_NEAR(found[s][t], next[static_cast<size_t>(target[t])], 2e-5) << s << " " << t;
        }
      }
    }
  }
}

TEST_F(ScoreTest, AgreesWithWhatTheSearchSays) {
  const auto sources = random_sources(4, {5, 2, 7});
  const auto found = translate(model, sources, {.search = {.beam_size = 3, .n_best = 3, .max_length = 20}});
  size_t ended = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    for (const Hypothesis& hypothesis : found[s]) {
      auto scores = score(model, {&sources[s], 1}, {&hypothesis.tokens, 1})[0];
      if (!hypothesis.ended) scores.pop_back();
      ended += hypothesis.ended;
      EXPECT_NEAR(std::accumulate(scores.begin(), scores.end(), 0.0), hypothesis.log_probability, 1e-4);
    }
  }
  EXPECT_GT(ended, 0u);
}

TEST_F(ScoreTest, WhatCannotBeIsNamed) {
  const std::vector<std::vector<int32_t>> two{{3, kEnd}, {4, kEnd}}, one{{5}}, pair{{5}, {37}},
      empty{{3, kEnd}, {}};
  try {
    score(model, two, one);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2 sources but 1 targets"));
  }
  EXPECT_THROW(score(model, two, {}), UsageError);
  EXPECT_THROW(score(model, two, pair), UsageError);
  EXPECT_THROW(score(model, empty, two), UsageError);
  EXPECT_THROW(score(model, one, std::vector<std::vector<int32_t>>{std::vector<int32_t>(41, 3)}), ShapeError);
  EXPECT_THROW(score(model, two, two, {.max_batch_tokens = 0}), UsageError);
}

}  // namespace
}  // namespace mh
