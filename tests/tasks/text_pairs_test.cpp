// Pairs of texts: how they are cut, and that masked words, heads and vectors are those of the sequence, with its
// token types, that the tokenizer's template makes. tests/text/pair_test.cpp has the templates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "multihead/base/error.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/measures/inspect_heads.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_model.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tasks/fill_words.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::ThrowsMessage;

std::filesystem::path golden(const char* name) {
  return std::filesystem::path(goldens_folder()) / name;
}

TEST(SharesOfAPair, AreThoseOfHuggingFace) {
  // The table of the tests of its truncation, for texts of 0, 2, 4 and 8 tokens and room for 7.
  constexpr size_t kSizes[] = {0, 2, 4, 8};
  constexpr std::pair<size_t, size_t> kExpected[4][4] = {{{0, 0}, {0, 2}, {0, 4}, {0, 7}},
                                                         {{2, 0}, {2, 2}, {2, 4}, {2, 5}},
                                                         {{4, 0}, {4, 2}, {3, 4}, {3, 4}},
                                                         {{7, 0}, {5, 2}, {4, 3}, {3, 4}}};
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j)
      EXPECT_EQ(shares_of_pair(kSizes[i], kSizes[j], 7), kExpected[i][j]) << kSizes[i] << " " << kSizes[j];
  }
  for (size_t a = 0; a < 14; ++a) {
    for (size_t b = 0; b < 14; ++b) {
      for (size_t room = 0; room < 29; ++room) {
        const auto [x, y] = shares_of_pair(a, b, room);
        ASSERT_LE(x, a);
        ASSERT_LE(y, b);
        ASSERT_EQ(x + y, std::min(a + b, room));
        // Who loses tokens keeps at least as many as the other, but for one.
        ASSERT_TRUE(x == a || x + 1 >= y);
        ASSERT_TRUE(y == b || y + 1 >= x);
      }
    }
  }
}

class PairsOfBert : public testing::Test {
 protected:
  /// [CLS] a [SEP] b [SEP] and its types, by hand.
  TextTokens by_hand(const std::string& a, const std::string& b) const {
    TextTokens tokens;
    const auto add = [&](const std::vector<int32_t>& ids, int32_t type) {
      tokens.ids.insert(tokens.ids.end(), ids.begin(), ids.end());
      tokens.types.insert(tokens.types.end(), ids.size(), type);
    };
    add({2}, 0);
    add(folder.tokenizer->encode_ids(a, false), 0);
    add({3}, 0);
    add(folder.tokenizer->encode_ids(b, false), 1);
    add({3}, 1);
    return tokens;
  }

  ModelFolder folder = load_model_folder(golden("fill/bert"));
  const EncoderModel& model = dynamic_cast<const EncoderModel&>(*folder.model);
  const std::string first = "Is the sky [MASK]?", second = "The [MASK] is green.";
};

TEST_F(PairsOfBert, HaveTheTypesOfTheTemplateAndLoseTheirLongerEnds) {
  const TextReader reader(folder, 37);
  const TextTokens whole = reader.read(first, second), expected = by_hand(first, second);
  EXPECT_EQ(whole.ids, expected.ids);
  EXPECT_EQ(whole.types, expected.types);
  EXPECT_EQ(whole.uncut, whole.ids.size());
  const size_t of_first = folder.tokenizer->encode_ids(first, false).size();
  const TextTokens cut = TextReader(folder, of_first + 3 + of_first).read(first, second + second + second);
  ASSERT_EQ(cut.ids.size(), 2 * of_first + 3);
  EXPECT_GT(cut.uncut, cut.ids.size());
  EXPECT_TRUE(std::equal(cut.ids.begin(), cut.ids.end() - 1, expected.ids.begin()));
  EXPECT_EQ(cut.ids.back(), 3);
  EXPECT_EQ(std::count(cut.types.begin(), cut.types.end(), 1), static_cast<std::ptrdiff_t>(of_first + 1));
  EXPECT_TRUE(reader.read(first).types.empty());
}

TEST_F(PairsOfBert, FillMasksOfBothTexts) {
  const auto found = fill_words(folder, {"[MASK]", first}, {.words = 7, .pairs = {"The sky.", second}});
  ASSERT_THAT(found, SizeIs(2));
  ASSERT_THAT(found[1], SizeIs(2));
  const TextTokens tokens = by_hand(first, second);
  for (const bool typed : {true, false}) {
    Tape tape;
    Context context{.tape = tape};
    Batch batch;
    batch.add(tokens.ids, 0, typed ? std::span<const int32_t>(tokens.types) : std::span<const int32_t>());
    const Var before = model.word_states(context, model.states(context, batch.view()));
    Tensor logits(before.rows(), model.vocabulary().size());
    model.vocabulary().logits(before.value(), logits.view());
    double difference = 0;
    size_t mask = 0;
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      if (tokens.ids[i] != folder.tokenizer->id_of("[MASK]")) continue;
      double sum = 0;
      const auto row = static_cast<int64_t>(i);
      for (int64_t v = 0; v < logits.cols(); ++v) sum += std::exp(static_cast<double>(logits(row, v)));
      for (const FilledWord& word : found[1][mask]) {
        const double expected = std::exp(static_cast<double>(logits(row, word.token))) / sum;
        difference = std::max(difference, std::abs(word.probability - expected));
      }
      ++mask;
    }
    EXPECT_EQ(mask, 2u);
    if (typed) {
      EXPECT_LT(difference, 1e-5);
    } else {
      EXPECT_GT(difference, 1e-3) << "the types are not read";
    }
  }
}

TEST_F(PairsOfBert, WhatCannotBeFilledIsNamed) {
  const auto refused = [&](const std::vector<std::string>& texts, const FillOptions& options,
                           const std::string& part) {
    EXPECT_THAT([&] { fill_words(folder, texts, options); }, ThrowsMessage<Error>(HasSubstr(part))) << part;
  };
  refused({first, first}, {.pairs = {second}}, "1 second texts for 2 texts");
  refused({"The sky."}, {.pairs = {"It is blue."}}, "text 1 has no mask; write [MASK]");
  std::string long_text;
  for (int i = 0; i < 30; ++i) long_text += "sky ";
  refused({first}, {.pairs = {long_text + "[MASK]"}}, "a mask stands behind the 37 that the model reads");
  refused({first}, {.pairs = {long_text}, .strict = true}, "but the model reads 37; shorten it");
  std::vector<std::string> remarks;
  fill_words(folder, {first},
             {.pairs = {long_text}, .remark = [&](const std::string& line) { remarks.push_back(line); }});
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("1 of 1 text cut to the 37 tokens that the model reads")));
}

TEST_F(PairsOfBert, HeadsSeeTheSequenceWithItsTypes) {
  const Observation seen = observe_text(folder, first, {}, {.pair = second});
  const TextTokens tokens = by_hand(first, second);
  EXPECT_EQ(seen.source.ids, tokens.ids);
  EXPECT_EQ(seen.source.tokens.front(), "[CLS]");
  EXPECT_EQ(std::count(seen.source.tokens.begin(), seen.source.tokens.end(), "[SEP]"), 2);
  for (const bool typed : {true, false}) {
    SiteValues kept;
    kept.keep("encoder.1.self_attention.weights.3");
    Tape tape;
    Context context{.tape = tape, .sites = &kept};
    Batch text;
    text.add(tokens.ids, 0, typed ? std::span<const int32_t>(tokens.types) : std::span<const int32_t>());
    model.read(context, text.view(), {});
    const Tensor &a = seen.value("encoder.1.self_attention.weights.3"),
                 &b = kept.value("encoder.1.self_attention.weights.3");
    const bool equal = std::equal(a.data(), a.data() + a.size(), b.data());
    EXPECT_EQ(equal, typed);
  }
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const auto [begin, end] = seen.source.offsets[i];
    EXPECT_EQ(begin == end, seen.source.tokens[i] == "[CLS]" || seen.source.tokens[i] == "[SEP]") << i;
  }
  EXPECT_EQ(seen.source.offsets[1].first, 0);
  std::vector<std::string> remarks;
  const HeadReport report =
      inspect_heads(folder, {.sources = {first, "", "A café."}, .pairs = {second, "", std::string(200, '?')}},
                    {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  EXPECT_EQ(report.sentences, 2);
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("1 of 2 pairs cut to the 37 tokens")));
  HeadsText trees{.sources = {"sky"}, .pairs = {"sky"}, .source_trees = {std::vector<Word>(1)}};
  EXPECT_THAT([&] { inspect_heads(folder, trees); },
              ThrowsMessage<UsageError>(HasSubstr("trees describe one text")));
  EXPECT_THAT(
      [&] {
        inspect_heads(folder, {.sources = {"a", "b"}, .pairs = {"a"}});
      },
      ThrowsMessage<UsageError>(HasSubstr("1 second texts for 2 source lines")));
}

TEST_F(PairsOfBert, VectorsAreTheMeanOfTheStatesOfTheSequence) {
  const SentenceModel sentences = load_sentence_model(golden("fill/bert"));
  const Tensor rows = embed_text(sentences, {"A café.", first}, {.pairs = {"The sky.", second}});
  const TextTokens tokens = by_hand(first, second);
  Tape tape;
  Context context{.tape = tape};
  Batch batch;
  batch.add(tokens.ids, 0, tokens.types);
  const ConstMatrixView states = model.states(context, batch.view()).value();
  for (int64_t j = 0; j < states.cols; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < states.rows; ++i) sum += static_cast<double>(states(i, j));
    EXPECT_NEAR(rows(1, j), sum / static_cast<double>(states.rows), 1e-5);
  }
  EXPECT_THROW(embed_text(sentences, {first}, {.pairs = {"a", "b"}}), UsageError);
  SentenceModel prompted = load_sentence_model(golden("fill/bert"));
  prompted.prompt = "query: ";
  EXPECT_NO_THROW(embed_text(prompted, {first}, {.pairs = {second}, .prompt = ""}));
  EXPECT_THAT([&] { embed_text(prompted, {first}, {.pairs = {second}}); },
              ThrowsMessage<UsageError>(HasSubstr("the prompt 'query: ' is for a single text")));
}

TEST(Pairs, OfModelsWithOneTypeHaveNoTypes) {
  const ModelFolder roberta = load_model_folder(golden("fill/roberta"));
  const TextTokens tokens = TextReader(roberta, 41).read("the sky", "<mask>");
  EXPECT_TRUE(tokens.types.empty());
  EXPECT_EQ(tokens.ids.front(), 0);
  EXPECT_EQ(std::count(tokens.ids.begin(), tokens.ids.end(), 2), 3);  // <s> a </s></s> b </s>
  EXPECT_THAT(fill_words(roberta, {"the sky"}, {.pairs = {"<mask>"}}).at(0), SizeIs(1));
}

TEST(Pairs, OfOtherModelsAreRefusedInOneLine) {
  const ModelFolder gpt2 = load_model_folder(golden("generate/gpt2"));
  EXPECT_THAT([&] { observe_text(gpt2, "a", {}, {.pair = "b"}); },
              ThrowsMessage<UsageError>(HasSubstr("holds a gpt2 model, which does not read two texts")));
  ModelFolder bert = load_model_folder(golden("fill/bert"));
  EXPECT_THAT([&] { TextReader(bert, 4).read("a", "b"); },
              ThrowsMessage<UsageError>(HasSubstr("a pair of texts needs more than its 3 special tokens")));
  EXPECT_THAT([&] { observe_text(bert, "a", "b", {.pair = "c"}); },
              ThrowsMessage<UsageError>(HasSubstr("leave out translations")));
  bert.tokenizer.reset();
  EXPECT_THROW(observe_text(bert, "a", {}, {.pair = "b"}), FileError);
}

}  // namespace
}  // namespace mh
