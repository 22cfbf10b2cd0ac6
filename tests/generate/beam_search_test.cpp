#include "multihead/generate/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/generate/naive_search.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A model whose translations end after a few tokens, some early and some late.
class BeamSearchTest : public testing::Test {
 protected:
  BeamSearchTest() : model(small_shape().config()), sources(random_sources(5, {7, 2, 11, 1, 5, 3})) {
    model.initialise(11);
    sharpen(model, 1.7f);
    add_to_logit(model, kEnd, 2.5f);
  }

  std::vector<std::vector<Hypothesis>> search(const SearchOptions& options,
                                              const std::vector<std::vector<int32_t>>& prefixes = {}) {
    return translate(model, sources, {.search = options, .max_batch_tokens = 1000}, prefixes);
  }

  static void expect_same(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(found[i].tokens, expected[i].tokens);
      EXPECT_EQ(found[i].ended, expected[i].ended);
      EXPECT_EQ(found[i].stopped, expected[i].stopped);
      EXPECT_THAT(found[i].log_probabilities,
                  testing::Pointwise(testing::FloatNear(1e-4f), expected[i].log_probabilities));
      EXPECT_NEAR(found[i].log_probability, expected[i].log_probability, 1e-4);
      EXPECT_NEAR(found[i].score, expected[i].score, 1e-4);
    }
  }

  void expect_as_naive(const SearchOptions& options, const std::vector<std::vector<int32_t>>& prefixes = {}) {
    const auto found = search(options, prefixes);
    ASSERT_EQ(found.size(), sources.size());
    for (size_t s = 0; s < sources.size(); ++s) {
      SCOPED_TRACE(s);
      expect_same(found[s], naive_search(model, sources[s], options,
                                         prefixes.empty() ? std::vector<int32_t>{} : prefixes[s]));
    }
  }

  EncoderDecoder model;
  std::vector<std::vector<int32_t>> sources;
};

TEST_F(BeamSearchTest, TheModelOfTheseTestsEndsSentencesAtManyLengths) {
  std::set<size_t> lengths;
  for (const auto& hypotheses : search({.beam_size = 3, .n_best = 3, .max_length = 17})) {
    for (const auto& hypothesis : hypotheses) lengths.insert(hypothesis.tokens.size());
  }
  EXPECT_GE(lengths.size(), 3u);
}

TEST_F(BeamSearchTest, GreedyIsTheMostProbableTokenEachTime) {
  const auto found = search({.beam_size = 1, .max_length = 13});
  for (size_t s = 0; s < sources.size(); ++s) {
    SCOPED_TRACE(s);
    std::vector<int32_t> tokens;
    double total = 0;
    bool ended = false;
    while (!ended && tokens.size() < 13) {
      auto next = next_log_probabilities(model, sources[s], tokens);
      next[kPad] = -1e9;
      const auto best = std::max_element(next.begin(), next.end());
      total += *best;
      ended = best == next.begin() + kEnd;
      if (!ended) tokens.push_back(static_cast<int32_t>(best - next.begin()));
    }
    ASSERT_EQ(found[s].size(), 1u);
    EXPECT_EQ(found[s][0].tokens, tokens);
    EXPECT_EQ(found[s][0].ended, ended);
    EXPECT_NEAR(found[s][0].log_probability, total, 1e-4);
  }
}

TEST_F(BeamSearchTest, FindsWhatTheSearchWithoutCachesFinds) {
  for (const int32_t beam : {1, 2, 3, 5}) {
    SCOPED_TRACE(beam);
    expect_as_naive({.beam_size = beam, .n_best = beam, .max_length = 13});
  }
}

TEST_F(BeamSearchTest, EndsEarlyOnlyWhenNothingWouldChange) {
  for (const double alpha : {-0.5, 0.0, 0.6, 1.0, 2.0}) {
    SCOPED_TRACE(alpha);
    expect_as_naive({.beam_size = 4, .n_best = 1, .length_penalty = {.alpha = alpha}, .max_length = 11});
    expect_as_naive({.beam_size = 4, .n_best = 2, .length_penalty = {.alpha = alpha}, .max_length = 11});
  }
}

TEST_F(BeamSearchTest, LooksForBetterOnesAsLongAsEarlyStoppingSays) {
  int changed = 0;
  for (const double alpha : {-0.5, 0.0, 1.0, 2.0}) {
    for (const EarlyStopping stopping :
         {EarlyStopping::kTrue, EarlyStopping::kFalse, EarlyStopping::kNever}) {
      SCOPED_TRACE(testing::Message() << alpha << ", " << name_of(stopping, kEarlyStoppingNames));
      const auto with = [&](std::optional<EarlyStopping> one) {
        return SearchOptions{.beam_size = 3,
                             .n_best = 3,
                             .length_penalty = {.alpha = alpha},
                             .early_stopping = one,
                             .max_length = 12};
      };
      expect_as_naive(with(stopping));
      const auto found = search(with(stopping)), usual = search(with(std::nullopt));
      for (size_t s = 0; s < found.size(); ++s) changed += found[s].back().tokens != usual[s].back().tokens;
    }
  }
  EXPECT_GT(changed, 3);
}

TEST_F(BeamSearchTest, AForcedLastTokenEndsWhatReachesTheLongestLength) {
  const SearchOptions options{.beam_size = 2, .n_best = 2, .max_length = 6};
  SearchOptions forced = options;
  forced.forced_last = kEnd;
  int reached = 0;
  for (const auto& hypotheses : search(forced)) {
    for (const Hypothesis& one : hypotheses) {
      EXPECT_TRUE(one.ended);
      EXPECT_LE(one.tokens.size(), 5u);
      if (one.tokens.size() < 5) continue;
      ++reached;
      EXPECT_EQ(one.log_probabilities.back(), 0);
      EXPECT_NEAR(one.score, one.log_probability / 6, 1e-6);
    }
  }
  EXPECT_GT(reached, 0);
  forced.forced_last = 999;
  EXPECT_THAT([&] { search(forced); }, ThrowsMessage<UsageError>(HasSubstr("forced_last")));
}

TEST_F(BeamSearchTest, HypothesesStopWhereTheRuleSaysSo) {
  Batch batch;
  for (const auto& source : sources) batch.add(source, static_cast<int64_t>(batch.ragged.sequences()));
  Tape tape;
  Decoding decoding(model, {.tape = tape});
  int stopped = 0;
  const SearchOptions options{.beam_size = 3, .n_best = 3, .max_length = 13};
  for (const auto& without : search(options)) {
    const int32_t stop = without[0].tokens.empty() ? 3 : without[0].tokens.back();
    const auto found = beam_search(
        decoding, batch.view(), options, {},
        [&](int32_t s, std::span<const int32_t> tokens) { return s != 4 && tokens.back() == stop; });
    for (size_t s = 0; s < sources.size(); ++s) {
      SCOPED_TRACE(testing::Message() << "stop " << stop << ", sentence " << s);
      expect_same(found[s], naive_search(model, sources[s], options, {}, nullptr, s == 4 ? -1 : stop));
      for (const Hypothesis& one : found[s]) {
        stopped += one.stopped;
        EXPECT_FALSE(one.stopped && (one.ended || one.tokens.back() != stop));
      }
    }
  }
  EXPECT_GT(stopped, 3);
}

TEST_F(BeamSearchTest, GnmtPenalty) {
  EXPECT_DOUBLE_EQ((LengthPenalty{.form = LengthPenalty::Form::kGnmt, .alpha = 2}).factor(7), 4.0);
  EXPECT_DOUBLE_EQ((LengthPenalty{.form = LengthPenalty::Form::kDivide, .alpha = 2}).factor(7), 49.0);
  EXPECT_DOUBLE_EQ((LengthPenalty{.alpha = 0}).factor(7), 1.0);
  expect_as_naive({.beam_size = 3,
                   .n_best = 3,
                   .length_penalty = {.form = LengthPenalty::Form::kGnmt, .alpha = 0.8},
                   .max_length = 11});
}

TEST_F(BeamSearchTest, ShortestAndLongestLength) {
  expect_as_naive({.beam_size = 3, .n_best = 3, .min_length = 4, .max_length = 7});
  expect_as_naive({.beam_size = 3, .n_best = 2, .min_length = 7, .max_length = 7});
  for (const auto& hypotheses : search({.beam_size = 2, .min_length = 7, .max_length = 7})) {
    EXPECT_EQ(hypotheses[0].tokens.size(), 7u);
    EXPECT_FALSE(hypotheses[0].ended);
  }
  expect_as_naive({.beam_size = 2, .n_best = 2, .max_length = 1});
}

TEST_F(BeamSearchTest, LengthsFollowTheSourceAndTheModel) {
  add_to_logit(model, kEnd, -50);
  for (const auto& hypotheses : search({.beam_size = 2})) EXPECT_EQ(hypotheses[0].tokens.size(), 41u);
  const auto found = search({.beam_size = 2, .min_length = 3, .max_length = 12, .max_length_factor = 1.5});
  std::vector<size_t> lengths;
  for (const auto& hypotheses : found) lengths.push_back(hypotheses[0].tokens.size());
  EXPECT_THAT(lengths, ElementsAre(11, 3, 12, 3, 8, 5));
}

TEST_F(BeamSearchTest, ForcedPrefixesOfManyLengths) {
  const std::vector<std::vector<int32_t>> prefixes{{5, 7, 5}, {}, {19}, {36, 3, 1, 8, 8}, {2}, {11, 12}};
  for (const int32_t beam : {1, 3})
    expect_as_naive({.beam_size = beam, .n_best = beam, .max_length = 9}, prefixes);
  const auto found = search({.beam_size = 3, .n_best = 3, .max_length = 9}, prefixes);
  for (size_t s = 0; s < prefixes.size(); ++s) {
    for (const auto& hypothesis : found[s]) {
      ASSERT_GE(hypothesis.tokens.size(), prefixes[s].size());
      EXPECT_TRUE(std::equal(prefixes[s].begin(), prefixes[s].end(), hypothesis.tokens.begin()));
    }
  }
}

TEST_F(BeamSearchTest, APrefixAsLongAsTheLongestLengthIsTheTranslation) {
  sources.resize(1);
  const auto found = search({.beam_size = 2, .max_length = 3}, {{9, 8, 7}});
  EXPECT_THAT(found[0][0].tokens, ElementsAre(9, 8, 7));
  EXPECT_FALSE(found[0][0].ended);
}

TEST_F(BeamSearchTest, HypothesesAreSortedAndDistinct) {
  for (const auto& hypotheses : search({.beam_size = 7, .n_best = 7, .max_length = 13})) {
    ASSERT_EQ(hypotheses.size(), 7u);
    std::set<std::vector<int32_t>> distinct;
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      EXPECT_LE(hypotheses[i].score, hypotheses[i == 0 ? 0 : i - 1].score);
      auto tokens = hypotheses[i].tokens;
      if (hypotheses[i].ended) tokens.push_back(kEnd);
      EXPECT_TRUE(distinct.insert(tokens).second);
    }
  }
}

TEST_F(BeamSearchTest, ABatchIsEachSentenceAlone) {
  const SearchOptions options{.beam_size = 4, .n_best = 4, .max_length = 13};
  const auto together = search(options);
  const auto alone = translate(model, sources, {.search = options, .max_batch_tokens = 1});
  const auto some = translate(model, sources, {.search = options, .max_batch_tokens = 13});
  for (const auto* other : {&alone, &some}) {
    for (size_t s = 0; s < sources.size(); ++s) {
      ASSERT_EQ((*other)[s].size(), together[s].size());
      for (size_t i = 0; i < together[s].size(); ++i) {
        EXPECT_EQ((*other)[s][i].tokens, together[s][i].tokens);
        EXPECT_EQ((*other)[s][i].score, together[s][i].score);
      }
    }
  }
}

TEST_F(BeamSearchTest, AnyThreadCountGivesTheSameBits) {
  const SearchOptions options{.beam_size = 3, .n_best = 3, .max_length = 13};
  const int before = thread_count();
  std::vector<std::vector<std::vector<Hypothesis>>> found;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    found.push_back(search(options));
  }
  set_thread_count(before);
  for (size_t s = 0; s < sources.size(); ++s) {
    for (size_t i = 0; i < 3; ++i) {
      for (const auto& other : found) {
        EXPECT_EQ(other[s][i].tokens, found[0][s][i].tokens);
        EXPECT_EQ(other[s][i].log_probability, found[0][s][i].log_probability);
      }
    }
  }
}

TEST_F(BeamSearchTest, AWideBeamFindsTheBestOfAllSequences) {
  TranslatorShape shape = small_shape();
  shape.vocabulary_size = 7;
  EncoderDecoder tiny(shape.config());
  tiny.initialise(3);
  sharpen(tiny, 2);
  const std::vector<std::vector<int32_t>> source{{3, 6, 5, 4, kEnd}};
  // Every sequence of at most 3 tokens: 6 tokens may come (not the padding), one of them ends.
  struct Sequence {
    std::vector<int32_t> tokens;
    double total;
    int32_t length;
  };
  std::vector<Sequence> all;
  const auto grow = [&](auto& self, const std::vector<int32_t>& tokens, double total) -> void {
    const auto next = next_log_probabilities(tiny, source[0], tokens);
    const auto length = static_cast<int32_t>(tokens.size()) + 1;
    for (int32_t token = 0; token < 7; ++token) {
      if (token == kPad) continue;
      auto longer = tokens;
      if (token != kEnd) longer.push_back(token);
      const double sum = total + next[static_cast<size_t>(token)];
      if (token == kEnd || length == 3) {
        all.push_back({longer, sum, length});
      } else {
        self(self, longer, sum);
      }
    }
  };
  grow(grow, {}, 0);
  ASSERT_EQ(all.size(), 1u + 5 + 5 * 5 * 6);
  for (const double alpha : {0.0, 1.0, 3.0}) {
    const LengthPenalty penalty{.alpha = alpha};
    const auto score = [&](const Sequence& s) { return s.total / penalty.factor(s.length); };
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return score(a) > score(b); });
    const auto found =
        translate(tiny, source,
                  {.search = {.beam_size = 200, .n_best = 20, .length_penalty = penalty, .max_length = 3}});
    ASSERT_EQ(found[0].size(), 20u);
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(found[0][i].tokens, all[i].tokens) << alpha << " " << i;
      EXPECT_NEAR(found[0][i].score, score(all[i]), 1e-5);
    }
  }
}

TEST_F(BeamSearchTest, TiesGoToTheEarlierHypothesisAndTheSmallerToken) {
  EncoderDecoder even(small_shape().config());  // all weights zero: every token is as probable as any other
  const auto found =
      translate(even, sources, {.search = {.beam_size = 2, .n_best = 2, .min_length = 2, .max_length = 4}});
  // Two tokens must come; then the end is the first of all continuations of both hypotheses in turn.
  EXPECT_THAT(found[0][0].tokens, ElementsAre(1, 1));
  EXPECT_THAT(found[0][1].tokens, ElementsAre(1, 1, 1));
  EXPECT_NEAR(found[0][0].log_probability, -3 * std::log(37.0), 1e-5);
}

TEST_F(BeamSearchTest, SuppressedTokensNeverCome) {
  SearchOptions options{.beam_size = 2, .n_best = 2, .max_length = 13};
  const auto before = search(options);
  for (const auto& hypothesis : before[0]) {
    options.suppressed.insert(options.suppressed.end(), hypothesis.tokens.begin(), hypothesis.tokens.end());
  }
  options.suppressed.push_back(kEnd);  // cannot be suppressed
  add_to_logit(model, kEnd, 3);
  const auto after = search(options);
  for (const auto& hypotheses : after) {
    for (const auto& hypothesis : hypotheses) {
      for (const int32_t token : hypothesis.tokens)
        EXPECT_THAT(options.suppressed, testing::Not(testing::Contains(token)));
    }
  }
  EXPECT_TRUE(after[0][0].ended);
  options.suppressed = {37};
  EXPECT_THROW(search(options), UsageError);
}

TEST_F(BeamSearchTest, MutedHeadsChangeWhatIsFound) {
  SiteValues sites;
  sites.mute("decoder.1.cross_attention.3");
  const SearchOptions options{.beam_size = 3, .n_best = 3, .max_length = 9};
  const auto found = translate(model, sources, {.search = options, .sites = &sites});
  for (size_t s = 0; s < sources.size(); ++s) {
    SCOPED_TRACE(s);
    expect_same(found[s], naive_search(model, sources[s], options, {}, &sites));
  }
}

TEST_F(BeamSearchTest, ImpossibleOptionsAreNamed) {
  const auto message = [&](const SearchOptions& options,
                           const std::vector<std::vector<int32_t>>& prefixes = {}) {
    try {
      search(options, prefixes);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message({.beam_size = 0}), HasSubstr("`beam_size`: expected an integer from 1 to 255, got 0"));
  EXPECT_THAT(message({.beam_size = 256}), HasSubstr("got 256"));
  EXPECT_THAT(message({.beam_size = 3, .n_best = 4}),
              HasSubstr("`n_best`: expected 1 to the beam size 3, got 4"));
  EXPECT_THAT(message({.max_length = 0}), HasSubstr("`max_length`: expected"));
  EXPECT_THAT(message({.min_length = 9, .max_length = 8}),
              HasSubstr("`min_length`: expected 0 to `max_length` 8, got 9"));
  EXPECT_THAT(message({.length_penalty = {.alpha = std::nan("")}}),
              HasSubstr("`length_penalty`: expected a number from -100 to 100, got nan"));
  EXPECT_THAT(message({.max_length_factor = -1}),
              HasSubstr("`max_length_factor`: expected a number of at least 0, got -1"));
  EXPECT_THAT(message({}, {{1}}), HasSubstr("prefixes: expected one for each of 6 sources, got 1"));
  EXPECT_THAT(message({}, {{37}, {}, {}, {}, {}, {}}), HasSubstr("got 37"));
  EXPECT_THAT(message({}, {{}, {}, {5, kEnd}, {}, {}, {}}), HasSubstr("other than the end token 0, got 0"));
  EXPECT_THAT(message({.max_length = 2}, {{}, {}, {5, 5, 5}, {}, {}, {}}), HasSubstr("prefix of 3 tokens"));
}

}  // namespace
}  // namespace mh
