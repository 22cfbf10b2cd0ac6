// Retrieval on a model made by hand of which one head copies, at every depth; where needles stand; and what is refused.
#include "multihead/heads/retrieval/heads_retrieval.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/heads/retrieval/cached_text.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/causal_model.h"
#include "tests/heads/patching/patch_families.h"
#include "tests/heads/retrieval/numbered_words.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int32_t kVocabulary = 19, kMostPositions = 317;

/// One layer of three heads; each word is a direction of its own. Head 1 looks for the word that follows, w(i + 1) for w(i) from i = 11
/// on, wherever that stands, and writes what it finds. The others look at all alike, and write nothing.
ModelFolder copying_folder() {
  CausalConfig config;
  config.embedding = {.vocabulary = kVocabulary, .d_model = kVocabulary, .scaled = false};
  config.max_positions = kMostPositions;
  config.stack = {.name = "decoder",
                  .d_model = kVocabulary,
                  .layers = {{.self_attention = {.heads = 3, .d_key = kVocabulary, .d_value = kVocabulary},
                              .feed_forward = {.d_ff = 7}}},
                  .mask = StackMask::causal(),
                  .norm = {.placement = NormPlacement::kPre}};
  auto model = std::make_unique<CausalModel>(config);
  model->visit(ParameterVisitor([](const std::string& name, Parameter& parameter) {
    const int64_t column = kVocabulary;  // of head 1
    for (int64_t i = 0; i < kVocabulary; ++i) {
      if (name == "embedding") parameter.value(i, i) = 1;
      if (name.ends_with(".gain")) parameter.value(0, i) = 1;
      if (name.ends_with("w_q") && i >= 11 && i + 1 < kVocabulary) parameter.value(i, column + i + 1) = 9;
      if (name.ends_with("w_k") || name.ends_with("w_v")) parameter.value(i, column + i) = 1;
      if (name.ends_with("w_o")) parameter.value(column + i, i) = 3;
    }
    parameter.changed();
  }));
  ModelFolder folder;
  folder.path = "copying";
  folder.model_type = "gpt2";
  folder.model = std::move(model);
  folder.tokenizer = test::numbered_tokenizer(kVocabulary);
  return folder;
}

/// The filler has words below 11 only.
RetrievalTexts copied_texts() {
  RetrievalTexts texts;
  texts.filler = "w1 w2 w3 w4 w5 w6 w7";
  texts.needles = {{.sentence = "w8 w11 w12 w13 w14 w9", .question = "w8 w11", .answer = "w12 w13 w14"},
                   {.sentence = "w10 w15 w16 w17", .question = "w9 w9 w15", .answer = "w16 w17"}};
  return texts;
}

TEST(Retrieval, TheHeadThatCopiesHasOneAndTheOthersNone) {
  const ModelFolder folder = copying_folder();
  for (const AnswerDecoding answers : {AnswerDecoding::kForced, AnswerDecoding::kGreedy}) {
    const RetrievalReport found = heads_retrieval(
        folder, copied_texts(), {.lengths = {13, 37}, .depths = {0, 0.1, 0.5, 0.9, 1}, .answers = answers});
    ASSERT_EQ(found.heads.size(), 3u);
    EXPECT_EQ(found.heads[1].head.name(), "decoder.0.self_attention.1");
    EXPECT_EQ(found.heads[1].score.mean, 1);
    EXPECT_EQ(found.heads[1].score.half, 0);
    EXPECT_GT(found.heads[1].weight.mean, 0.99);
    for (const size_t other : {0u, 2u}) {
      EXPECT_EQ(found.heads[other].score.mean, 0);
      EXPECT_LT(found.heads[other].weight.mean, 0.1);
    }
    EXPECT_EQ(found.trials.size(), 20u);
    EXPECT_EQ(found.exact(), 1);
    EXPECT_TRUE(found.needs.empty());
    for (const RetrievalTrial& trial : found.trials) EXPECT_LT(trial.log_probability, 0);
  }
}

TEST(Retrieval, OneOfTheAnswersTokensIsAShareOfTheScore) {
  // w18 follows w17, but w3 follows no word that the head looks for.
  RetrievalTexts texts = copied_texts();
  texts.needles = {{.sentence = "w8 w17 w18 w3 w5", .question = "w17", .answer = "w18 w3 w5"}};
  const RetrievalReport found = heads_retrieval(copying_folder(), texts, {.lengths = {23}, .depths = {0.5}});
  EXPECT_DOUBLE_EQ(found.heads[1].score.mean, 1.0 / 3);
  EXPECT_TRUE(std::isinf(found.heads[1].score.half));  // of one needle
  EXPECT_EQ(found.exact(), 0);
}

// One of the three tokens of one answer, and both of the other.
TEST(Retrieval, ScoresAreSaidByLengthAndDepth) {
  RetrievalTexts texts = copied_texts();
  texts.needles[0] = {.sentence = "w8 w17 w18 w3 w5", .question = "w17", .answer = "w18 w3 w5"};
  const RetrievalReport found =
      heads_retrieval(copying_folder(), texts, {.lengths = {37, 13}, .depths = {1, 0.3, 0}});
  const std::vector<RetrievalPlace> places = found.places();
  ASSERT_EQ(places.size(), 6u);
  EXPECT_EQ(places[1].length, 37);
  EXPECT_EQ(places[1].depth, 0.3);
  EXPECT_EQ(places[5].length, 13);
  EXPECT_EQ(places[5].exact, found.exact(13, 0));
  EXPECT_EQ(places[5].log_probability, found.log_probability(13, 0));
  ASSERT_EQ(found.heads[1].by_place.size(), 6u);
  // Where the head looks for nothing its weights are alike, and which of them is largest is up to rounding: one more token may count.
  for (const double score : found.heads[1].by_place) {
    EXPECT_GE(score, (1.0 / 3 + 1) / 2 - 1e-12);
    EXPECT_LE(score, (2.0 / 3 + 1) / 2 + 1e-12);
  }
  for (const RetrievalHead& head : found.heads) {
    double sum = 0;
    for (const double score : head.by_place) sum += score;
    EXPECT_NEAR(sum / 6, head.score.mean, 1e-12);
  }
}

TEST(Retrieval, WhatTheModelWritesCountsWhereItAnswersItself) {
  const ModelFolder folder = copying_folder();
  SiteValues muted;
  muted.mute("decoder.0.self_attention.1");
  // Without the head's output the model repeats the last word, which is no word of the first answer.
  RetrievalOptions options{
      .lengths = {23}, .depths = {0.5}, .answers = AnswerDecoding::kGreedy, .sites = &muted};
  const RetrievalReport written = heads_retrieval(folder, copied_texts(), options);
  EXPECT_EQ(written.exact(), 0);
  EXPECT_EQ(written.heads[1].score.mean, 0);
  options.answers = AnswerDecoding::kForced;
  const RetrievalReport read = heads_retrieval(folder, copied_texts(), options);
  EXPECT_EQ(read.exact(), 0);
  EXPECT_EQ(read.heads[1].score.mean, 1);  // it looks there all the same
  EXPECT_LT(read.log_probability(),
            heads_retrieval(folder, copied_texts(), {.lengths = {23}}).log_probability());
}

TEST(Retrieval, ALimitedHeadLosesWhatIsBeyondItsWindow) {
  const ModelFolder folder = copying_folder();
  RetrievalTexts texts = copied_texts();
  texts.filler.clear();  // longer than the text whose loss is measured, which ends where the filler does
  for (int i = 0; i < 37; ++i) texts.filler += fmt::format("w{} ", 1 + i / 4);
  RetrievalOptions options{.lengths = {29},
                           .depths = {0.5},
                           .limit = LimitedRows::kAnswer,
                           .sinks = 2,
                           .window = 7,
                           .text_tokens = 31};
  for (const LimitedRows rows : {LimitedRows::kAnswer, LimitedRows::kAll}) {
    options.limit = rows;
    const RetrievalReport found = heads_retrieval(folder, texts, options);
    ASSERT_EQ(found.needs.size(), 3u);
    EXPECT_GT(found.needs[1].fall.mean, 1);
    for (const size_t other : {0u, 2u}) {
      EXPECT_NEAR(found.needs[other].fall.mean, 0, 1e-5);  // nothing that they give counts
      EXPECT_NEAR(found.needs[other].loss_rise->mean, 0, 1e-5);
    }
    EXPECT_GT(std::abs(found.needs[1].loss_rise->mean), 1e-3);  // it looks at all of the filler alike
  }
  // At depth 1 the needle is near, at depth 0 among the first keys.
  options.sinks = 8;
  options.window = 11;
  options.depths = {0, 1};
  EXPECT_NEAR(heads_retrieval(folder, texts, options).needs[1].fall.mean, 0, 0.1);
  options.window = 1000;
  options.depths = {0.5};
  options.heads = {HeadPattern("decoder.0.self_attention.1")};
  const RetrievalReport whole = heads_retrieval(folder, texts, options);
  ASSERT_EQ(whole.needs.size(), 1u);
  EXPECT_NEAR(whole.needs[0].fall.mean, 0, 1e-5);
}

TEST(Retrieval, HeadsThatShareKeysAreLimitedTogether) {
  const ModelFolder folder = test::llama_folder();
  const RetrievalTexts texts = [] {
    RetrievalTexts made;
    made.filler = "a dogs the cats";
    made.needles = {{.sentence = "two dogs see", .question = "two", .answer = "dogs see"}};
    return made;
  }();
  RetrievalOptions options{.lengths = {11},
                           .depths = {0.5},
                           .limit = LimitedRows::kAll,
                           .sinks = 1,
                           .window = 2,
                           .by_group = true,
                           .heads = {HeadPattern("decoder.1.self_attention.4")}};
  const RetrievalReport found = heads_retrieval(folder, texts, options);
  ASSERT_EQ(found.needs.size(), 1u);
  EXPECT_THAT(found.needs[0].heads,
              ElementsAre(HeadName{"decoder.1.self_attention", 3}, HeadName{"decoder.1.self_attention", 4},
                          HeadName{"decoder.1.self_attention", 5}));
  options.heads.clear();
  EXPECT_EQ(heads_retrieval(folder, texts, options).needs.size(), 6u);
}

TEST(Retrieval, NeedlesStandBehindSentences) {
  RetrievalTexts texts = copied_texts();
  ModelFolder folder = copying_folder();
  // The words with a full stop are unknown, w0, and end a sentence.
  texts.filler = "w1 w2 w3. w4 w5 w6 w7. w1";
  const RetrievalReport found =
      heads_retrieval(folder, texts, {.lengths = {28}, .depths = {0, 0.2, 0.3, 0.51, 1}});
  std::vector<int32_t> places;
  for (const RetrievalTrial& trial : found.trials) {
    if (trial.needle == 0)
      places.push_back(trial.place);  // in a filler of 20 tokens, whose sentences end at 3, 7, 11, 15, 19
  }
  EXPECT_THAT(places, ElementsAre(0, 3, 3, 7, 20));
}

TEST(Retrieval, BlocksOfRowsAreTheWholeText) {
  const ModelFolder folder = copying_folder();
  std::vector<int32_t> ids, next;
  for (int32_t i = 0; i < 311; ++i) ids.push_back((i * i + 3 * i) % kVocabulary);  // more than one block
  next.assign(ids.begin() + 1, ids.end());
  next.push_back(5);
  CachedText text(folder.language_model(), nullptr);
  const PredictedTokens found = text.read(ids, nullptr, {.targets = next, .best = true});
  Tape tape;
  Context context{.tape = tape};
  Batch batch;
  batch.add(ids, 0);
  VocabularyScratch scratch;
  const std::vector<float> whole =
      folder.language_model().log_probabilities(context, {}, batch.view(), next, scratch);
  ASSERT_EQ(found.log_probabilities.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(found.log_probabilities[i], whole[i], 1e-5);
  EXPECT_EQ(found.best.size(), ids.size());
}

TEST(Retrieval, NeedlesComeWithIt) {
  const RetrievalTexts texts;
  EXPECT_EQ(texts.needles.size(), 10u);
  for (const RetrievalNeedle& needle : texts.needles)
    EXPECT_THAT(needle.sentence, HasSubstr(needle.question + " " + needle.answer));
  EXPECT_GT(texts.filler.size(), 4000u);
  EXPECT_EQ(texts.filler.find('\n'), std::string::npos);
}

TEST(Retrieval, ReadsNeedlesOfLines) {
  const std::vector<std::string> lines = {"a b.\ta\tb", "", "c d.\tc\td\r"};
  const std::vector<RetrievalNeedle> needles = needles_of(lines, "facts");
  ASSERT_EQ(needles.size(), 2u);
  EXPECT_EQ(needles[1].answer, "d");
  const std::vector<std::string> wrong = {"a b.\ta\tb", "a b."};
  EXPECT_THAT(
      [&] { needles_of(wrong, "facts"); },
      ThrowsMessage<FormatError>(HasSubstr("facts, line 2: expected a sentence, a question and its answer "
                                           "with tabs between them, got 1 field")));
}

TEST(Retrieval, SaysInOneLineWhatIsWrong) {
  const ModelFolder folder = copying_folder();
  const auto refused = [&](const RetrievalTexts& texts, const RetrievalOptions& options, const char* part) {
    EXPECT_THAT([&] { heads_retrieval(folder, texts, options); }, ThrowsMessage<UsageError>(HasSubstr(part)))
        << part;
  };
  const RetrievalTexts texts = copied_texts();
  RetrievalTexts none = texts, elsewhere = texts, other = texts, blank = texts, empty = texts;
  none.needles.clear();
  elsewhere.needles[1].answer = "w9";
  other.needles[0] = {.sentence = "xw12 w13", .question = "w11", .answer = "w12"};
  blank.filler = " ";
  empty.needles[1].question = "";
  refused(none, {.lengths = {23}}, "`needles`: there are none");
  refused(elsewhere, {.lengths = {23}}, "needle 2: its answer 'w9' does not stand in 'w10 w15 w16 w17'");
  refused(other, {.lengths = {23}},
          "needle 1: 'w12' has other tokens after its question than in its sentence");
  refused(blank, {.lengths = {23}}, "`filler`: it has no tokens");
  refused(empty, {.lengths = {23}}, "needle 2: its question is empty");
  refused(texts, {.lengths = {}}, "`lengths`: there are none");
  refused(texts, {.lengths = {23}, .depths = {}}, "`depths`: there are none");
  refused(texts, {.lengths = {7}},
          "`lengths`: a text of 7 has no room for the longest needle and its question; the least is 8");
  refused(texts, {.lengths = {316}},
          "with an answer of 3 tokens a text has at most 315 of the model's 317 positions, not 316");
  refused(texts, {.lengths = {1000}}, "`lengths`: 1000 tokens are more than the 317");
  refused(texts, {.lengths = {23}, .depths = {1.5}}, "`depths`: expected a number from 0 to 1, got 1.5");
  refused(texts, {.lengths = {23}, .depths = {std::numeric_limits<double>::quiet_NaN()}}, "`depths`");
  refused(texts, {.lengths = {0}}, "`lengths`: expected an integer from 1 to 2147483647, got 0");
  refused(texts, {.lengths = {23}, .limit = LimitedRows::kAll, .window = 0}, "`window`");
  refused(texts, {.lengths = {23}, .heads = {HeadPattern("*")}}, "`heads` are those that are limited");
  refused(texts,
          {.lengths = {23}, .limit = LimitedRows::kAll, .heads = {HeadPattern("decoder.1.self_attention.0")}},
          "decoder.1.self_attention");
  SiteValues values;
  values.keep("decoder.7.output");
  refused(texts, {.lengths = {23}, .sites = &values}, "decoder.7.output");
  for (const ModelFolder& made : {test::bert_folder(), test::translator_folder()})
    EXPECT_THAT([&] { heads_retrieval(made, texts); },
                ThrowsMessage<UsageError>(HasSubstr("name a causal model")));
}

}  // namespace
}  // namespace mh
