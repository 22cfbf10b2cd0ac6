#include "multihead/generate/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/generate/beam_search.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TranslateTest : public testing::Test {
 protected:
  TranslateTest() : model(small_shape().config()) {
    model.initialise(7);
    sharpen(model, 1.7f);
    add_to_logit(model, kEnd, 2);
  }
  EncoderDecoder model;
};

TEST_F(TranslateTest, KeepsTheOrderAndLeavesEmptySourcesEmpty) {
  auto sources = random_sources(3, {2, 13, 5, 3, 11, 7, 5});
  sources.insert(sources.begin() + 2, std::vector<int32_t>{});
  sources.push_back({});
  std::vector<int64_t> done;
  const int before = thread_count();
  set_thread_count(1);  // told after each batch of the calling thread: all of them are its own
  const auto found = translate(model, sources,
                               {.search = {.beam_size = 2, .max_length = 9},
                                .max_batch_tokens = 17,
                                .progress = [&](int64_t count) { done.push_back(count); }});
  set_thread_count(before);
  ASSERT_EQ(found.size(), 9u);
  EXPECT_EQ(done.back(), 7);
  EXPECT_GE(done.size(), 3u);
  Tape tape;
  for (size_t s = 0; s < sources.size(); ++s) {
    if (sources[s].empty()) {
      EXPECT_TRUE(found[s].empty());
      continue;
    }
    Ragged ragged;
    ragged.add(static_cast<int32_t>(sources[s].size()));
    Decoding decoding(model, {.tape = tape});
    const auto alone = beam_search(decoding, {.ids = sources[s], .ragged = &ragged, .sentences = {}},
                                   {.beam_size = 2, .max_length = 9});
    EXPECT_EQ(found[s][0].tokens, alone[0][0].tokens) << s;
  }
  EXPECT_TRUE(translate(model, {}).empty());
}

TEST_F(TranslateTest, SharedOutToThreadsItIsTheSame) {
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < 97; ++i) lengths.push_back(2 + i * 7 % 31);
  const auto sources = random_sources(8, lengths);
  SiteValues sites;
  sites.mute("decoder.2.self_attention.0");
  const TranslateOptions options{.search = {.beam_size = 3, .n_best = 2, .max_length = 12},
                                 .max_batch_tokens = 61,
                                 .align = AlignOptions{},
                                 .sites = &sites};
  const int before = thread_count();
  set_thread_count(1);
  const auto expected = translate(model, sources, options);
  for (const int threads : {2, 3, 7}) {
    set_thread_count(threads);
    EncoderDecoder fresh(small_shape().config());  // whose weights are not packed yet
    fresh.initialise(7);
    sharpen(fresh, 1.7f);
    add_to_logit(fresh, kEnd, 2);
    Translator translator(fresh);
    for (int round = 0; round < 2; ++round) {
      const auto found = translator.translate(sources, options);
      for (size_t s = 0; s < sources.size(); ++s) {
        ASSERT_EQ(found[s].size(), expected[s].size());
        for (size_t i = 0; i < found[s].size(); ++i) {
          EXPECT_EQ(found[s][i].tokens, expected[s][i].tokens);
          EXPECT_EQ(found[s][i].log_probability, expected[s][i].log_probability);
          EXPECT_EQ(found[s][i].alignment, expected[s][i].alignment);
        }
      }
      // What a thread meets reaches the caller.
      std::vector<std::vector<int32_t>> prefixes(sources.size());
      prefixes[41] = std::vector<int32_t>(13, 5);
      EXPECT_THROW(translator.translate(sources, options, prefixes), UsageError);
    }
  }
  set_thread_count(before);
}

TEST_F(TranslateTest, SourcesThatCannotBeAreNamed) {
  std::vector<std::vector<int32_t>> sources{{3, kEnd}, std::vector<int32_t>(42, 5)};
  try {
    translate(model, sources);
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("source 2: expected at most 41 tokens, as many as the model reads, got 42"));
  }
  for (const int32_t id : {-1, 37}) {
    sources[1] = {4, id, kEnd};
    EXPECT_THROW(translate(model, sources), UsageError);
  }
  sources.pop_back();
  EXPECT_THROW(translate(model, sources, {.max_batch_tokens = 0}), UsageError);
  SiteValues sites;
  sites.mute("decoder.3.cross_attention.0");
  EXPECT_THROW(translate(model, sources, {.sites = &sites}), UsageError);
}

TEST_F(TranslateTest, AlignmentsFollowTheLargestWeight) {
  const auto sources = random_sources(9, {7, 3, 5});
  const SearchOptions search{.beam_size = 3, .n_best = 2, .min_length = 3, .max_length = 8};
  const auto found =
      translate(model, sources, {.search = search, .align = AlignOptions{.layer = 1, .head = 4}});
  const auto plain = translate(model, sources, {.search = search});
  size_t points = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    for (size_t n = 0; n < found[s].size(); ++n) {
      const Hypothesis& hypothesis = found[s][n];
      EXPECT_EQ(hypothesis.tokens, plain[s][n].tokens);
      EXPECT_TRUE(plain[s][n].alignment.empty());
      std::vector<int32_t> target_in{kPad};
      target_in.insert(target_in.end(), hypothesis.tokens.begin(), hypothesis.tokens.end());
      Ragged source_ragged, target_ragged;
      source_ragged.add(static_cast<int32_t>(sources[s].size()));
      target_ragged.add(static_cast<int32_t>(target_in.size()));
      Tape tape;
      SiteValues kept;
      kept.keep("decoder.1.cross_attention.weights.4");
      Context context{.tape = tape, .sites = &kept};
      const Sequences source{.ids = sources[s], .ragged = &source_ragged, .sentences = {}};
      model.decode(context, {.ids = target_in, .ragged = &target_ragged, .sentences = {}},
                   model.encode(context, source), source);
      const size_t keys = sources[s].size();
      std::vector<AlignmentPoint> expected;
      for (size_t i = 0; i < hypothesis.tokens.size(); ++i) {
        const float* row =
            kept.value("decoder.1.cross_attention.weights.4").view().row(static_cast<int64_t>(i));
        const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(keys)) - row;
        if (static_cast<size_t>(best) + 1 == keys) continue;  // the end token
        expected.push_back({static_cast<int32_t>(best), static_cast<int32_t>(i)});
      }
      EXPECT_EQ(hypothesis.alignment, expected);
      points += expected.size();
    }
  }
  EXPECT_GT(points, 5u);
  EXPECT_THROW(translate(model, sources, {.align = AlignOptions{.layer = 3}}), UsageError);
  EXPECT_THROW(translate(model, sources, {.align = AlignOptions{.head = 5}}), UsageError);
}

TEST_F(TranslateTest, AlignmentsOfSeveralHeadsFollowTheirMeanInEitherRow) {
  const auto sources = random_sources(9, {7, 3, 5});
  const std::vector<std::vector<int32_t>> targets{{9, 4, 11, 6}, {3, 8}, {}},
      longer{{9, 4, 11, 6, 5}, {3, 8, 5}, {5}};
  Batch batch;
  for (const auto& source : sources) batch.add(source, 0);
  Tape tape;
  const Context context{.tape = tape};
  const AligningHeads all{.heads = {{2, 0}, {2, 1}, {2, 2}, {2, 3}, {2, 4}}};
  EXPECT_EQ(align(model, context, batch.view(), targets, {.heads = all}),
            align(model, context, batch.view(), targets));
  EXPECT_EQ(align(model, context, batch.view(), targets, {.heads = {.heads = {{0, 3}}}}),
            align(model, context, batch.view(), targets, {.layer = 0, .head = 3}));
  // The row that reads token t is the one that predicts what comes behind it.
  AligningHeads two{.heads = {{0, 3}, {1, 2}}};
  auto behind = align(model, context, batch.view(), longer, {.heads = two});
  two.query = AlignedQuery::kReads;
  for (auto& of_sentence : behind) {
    std::erase_if(of_sentence, [](const AlignmentPoint& point) { return point.target == 0; });
    for (AlignmentPoint& point : of_sentence) --point.target;
  }
  EXPECT_EQ(align(model, context, batch.view(), targets, {.heads = two}), behind);
  // Of a target that fills the model no row reads the last token.
  const std::vector<std::vector<int32_t>> longest(3, std::vector<int32_t>(41, 7));
  for (const auto& of_sentence : align(model, context, batch.view(), longest, {.heads = two})) {
    for (const AlignmentPoint& point : of_sentence) EXPECT_LT(point.target, 40);
  }
  const auto message = [&](const AligningHeads& heads) {
    try {
      align(model, context, batch.view(), targets, {.heads = heads});
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message({.heads = {{1, 0}, {3, 0}}}),
              HasSubstr("layers of the decoder from 0 to 2, got [3, 0]"));
  EXPECT_THAT(message({.heads = {{0, 5}}}), HasSubstr("heads of layer 0 from 0 to 4, got [0, 5]"));
}

}  // namespace
}  // namespace mh
