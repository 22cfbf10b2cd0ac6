// Evidence of heads on weights made by hand.
#include "multihead/heads/measures/head_evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "multihead/heads/corpus/corpus_reader.h"
#include "tests/heads/measures/synthetic.h"

namespace mh {
namespace {

using test::Synthetic;
constexpr double kSmall = 1e-6;  // weights are float32

/// Sentences of words of one letter with one space between them; token ids are the letters. [ and ] are special tokens.
CorpusBlock letters(const std::vector<std::string>& sentences, bool causal = false) {
  CorpusBlock block{.causal = causal};
  for (const std::string& sentence : sentences) {
    block.lines.push_back(std::ssize(block.lines) + 1);
    std::string text;
    auto& ids = block.source.ids.emplace_back();
    auto& offsets = block.source.offsets.emplace_back();
    auto& words = block.source.words.emplace_back();
    int32_t word = 0;
    for (const char token : sentence) {
      ids.push_back(token);
      const bool special = token == '[' || token == ']';
      words.push_back(special ? -1 : word++);
      if (special) {
        offsets.emplace_back(0, 0);
        continue;
      }
      if (!text.empty()) text += ' ';
      offsets.emplace_back(static_cast<int32_t>(text.size()), static_cast<int32_t>(text.size()) + 1);
      text += token;
    }
    block.text.sources.push_back(text);
  }
  return block;
}

std::vector<HeadEvidence> evidence_of(const CorpusBlock& block, Synthetic& weights,
                                      EvidenceOptions options = {}, const EvidenceModel& model = {}) {
  options.least_count = 1;
  HeadEvidenceObserver observer(options, model);
  observer.begin(block);
  observer.weights(weights.observed());
  return observer.heads();
}

TEST(HeadEvidence, ThreeTokensHaveTheFiguresOfTheFormulas) {
  // The first token is no key, for the text has no special tokens; a token is no key of its own.
  Synthetic weights("encoder.2.self_attention", 1);
  weights.add({{{0.1, 0.2, 0.7}, {0.5, 0.1, 0.4}, {0.6, 0.3, 0.1}}});
  const HeadEvidence head = evidence_of(letters({"abc"}), weights).at(0);
  EXPECT_EQ(head.name(), "encoder.2.self_attention.0");
  EXPECT_EQ(head.queries, 3);
  EXPECT_EQ(head.sure, 1) << "a reads c with 0.7";
  EXPECT_EQ(head.sentences(), 1);
  EXPECT_EQ(head.strengths[13] + head.strengths[14], 1) << "0.7 is the border of two bins";

  ASSERT_EQ(head.strongest.size(), 1u);
  const EvidenceSentence& sentence = head.strongest[0];
  EXPECT_EQ(sentence.line, 1);
  EXPECT_NEAR(sentence.strength, 0.7, kSmall);
  EXPECT_EQ(sentence.query.word, "a");
  EXPECT_EQ(sentence.key.word, "c");
  EXPECT_EQ(sentence.key.id, 'c');
  EXPECT_EQ(std::pair(sentence.key.begin, sentence.key.end), std::pair(4, 5));
  EXPECT_EQ(*sentence.key_text, "a b c");

  // Choices: a -> c 0.7, b -> c 0.4, c -> b 0.3. Evenly: a chooses b or c, b only c, c only b.
  ASSERT_EQ(head.key_tokens.size(), 1u) << "b is chosen less than evenly";
  const TokenShare& key = head.key_tokens[0];
  EXPECT_EQ(key.id, 'c');
  EXPECT_EQ(key.count, 2);
  EXPECT_NEAR(key.share, 1.1 / 1.4, kSmall);
  EXPECT_NEAR(key.expected, 0.5, kSmall);
  EXPECT_NEAR(key.weight, 0.55, kSmall);
  EXPECT_NEAR(key.score(), 1.1 / 1.4 * std::log(1.1 / 1.4 / 0.5), kSmall);
  ASSERT_EQ(head.query_tokens.size(), 1u);
  EXPECT_EQ(head.query_tokens[0].id, 'a');
  EXPECT_EQ(head.query_tokens[0].share, 1);
  EXPECT_NEAR(head.query_tokens[0].lift(), 3, kSmall);
  EXPECT_EQ(head.query_tokens[0].weight, 1);
  EXPECT_TRUE(head.alike.empty()) << "it is the only head";
}

TEST(HeadEvidence, SpecialTokensAreNeitherQueriesNorKeys) {
  Synthetic weights("encoder.0.self_attention", 1);
  weights.add({{{0, 1, 0, 0}, {0.2, 0, 0.1, 0.7}, {0.1, 0.3, 0.5, 0.1}, {0, 0, 1, 0}}});
  const HeadEvidence head = evidence_of(letters({"[ab]"}), weights).at(0);
  EXPECT_EQ(head.queries, 2);
  ASSERT_EQ(head.strongest.size(), 1u);
  EXPECT_NEAR(head.strongest[0].strength, 0.3, kSmall);
  EXPECT_EQ(head.strongest[0].query.word, "b");
  EXPECT_EQ(head.strongest[0].key.word, "a")
      << "the first token of the text is a key where a special token is before it";
}

TEST(HeadEvidence, EachPairOfWordsComesOnceAndTheEarlierOfEqualSentencesFirst) {
  const auto read = [](double weight) {
    return std::vector<std::vector<double>>{{0.75, 0, 0}, {0.5, 0, weight}, {0, 0, 0}};
  };
  Synthetic weights("encoder.0.self_attention", 1);
  for (const double weight : {0.5, 0.75, 0.25, 0.75, 0.5}) weights.add({read(weight)});
  const CorpusBlock block = letters({"abc", "axy", "aBC", "abc", "auv"});
  const auto strongest = [&](int most) {
    std::vector<std::pair<int64_t, double>> found;
    const HeadEvidence head = evidence_of(block, weights, {.sentences = most}).at(0);
    for (const EvidenceSentence& sentence : head.strongest)
      found.emplace_back(sentence.line, sentence.strength);
    return found;
  };
  using testing::ElementsAre;
  EXPECT_THAT(strongest(10), ElementsAre(std::pair(2, 0.75), std::pair(4, 0.75), std::pair(5, 0.5)));
  EXPECT_THAT(strongest(2), ElementsAre(std::pair(2, 0.75), std::pair(4, 0.75)));
  EXPECT_THAT(strongest(1), ElementsAre(std::pair(2, 0.75)));
  EXPECT_TRUE(strongest(0).empty());

  const HeadEvidence head = evidence_of(block, weights, {.usual = 1}).at(0);
  EXPECT_EQ(head.strengths[5], 1);
  EXPECT_EQ(head.strengths[10], 2);
  EXPECT_EQ(head.strengths[15], 2);
  EXPECT_NEAR(*head.quantile(0.5), 0.525 + 0.0125, 1e-12) << "three quarters through the third bin's two";
  ASSERT_EQ(head.usual.size(), 1u);
  EXPECT_EQ(head.usual[0].line, 1) << "the first sentence of the median's bin";
}

TEST(HeadEvidence, ADecoderChoosesAmongWhatItsMaskLeaves) {
  Synthetic weights("decoder.0.self_attention", 1);
  weights.add({{{1, 0, 0, 0}, {0.5, 0.5, 0, 0}, {0.25, 0.5, 0.25, 0}, {0.125, 0.125, 0.5, 0.25}}});
  const CorpusBlock block = letters({"abcd"}, true);
  const HeadEvidence whole = evidence_of(block, weights).at(0);
  EXPECT_EQ(whole.queries, 2) << "a and b have no key before them but the first";
  ASSERT_EQ(whole.key_tokens.size(), 1u);
  EXPECT_EQ(whole.key_tokens[0].id, 'c');
  EXPECT_NEAR(whole.key_tokens[0].expected, 0.25, kSmall) << "d chooses b or c, c only b";
  const HeadEvidence window = evidence_of(block, weights, {.sure = 0.4},
                                          {.mask = [](std::string_view) { return Mask::window(1, 0); }})
                                  .at(0);
  EXPECT_EQ(window.queries, 2);
  EXPECT_EQ(window.sure, 2);
  EXPECT_TRUE(window.key_tokens.empty()) << "each query has one key: nothing can be chosen more often";
}

TEST(HeadEvidence, HeadsAreAlikeThatChooseTheSameKeys) {
  // Of three queries heads 0 and 2 choose two times the same key, heads 0 and 1 never.
  Synthetic weights("encoder.0.self_attention", 3);
  weights.add({test::one_hot({0, 2, 3, 1, 0}, 5), test::one_hot({0, 3, 1, 2, 0}, 5),
               test::one_hot({0, 2, 3, 2, 0}, 5)});
  EvidenceModel one;
  one.heads = {{"encoder.0.self_attention", 0}};
  one.kinds = {AttentionKind::kEncoderSelf};
  const auto heads = evidence_of(letters({"[abc]"}), weights, {}, one);
  ASSERT_EQ(heads.size(), 1u) << "others were not asked for";
  ASSERT_EQ(heads[0].alike.size(), 2u);
  EXPECT_EQ(heads[0].alike[0].head.head, 2);
  EXPECT_NEAR(heads[0].alike[0].agreement, 2.0 / 3, kSmall);
  EXPECT_NEAR(heads[0].alike[0].by_chance, 0.5, kSmall) << "each query has two keys";
  EXPECT_EQ(heads[0].alike[1].agreement, 0);
  EXPECT_EQ(evidence_of(letters({"[abc]"}), weights, {.alike = 1}).at(1).alike.size(), 1u);
}

TEST(HeadEvidence, OfSentencesWithoutTwoWordsThereIsNone) {
  Synthetic weights("encoder.0.self_attention", 2);
  weights.add({test::one_hot({0}, 1), test::one_hot({0}, 1)});
  const auto heads = evidence_of(letters({"a"}), weights);
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(heads[0].queries, 0);
  EXPECT_TRUE(heads[0].strongest.empty() && heads[0].usual.empty() && heads[0].alike.empty());
  EXPECT_TRUE(heads[0].key_tokens.empty() && heads[0].query_tokens.empty());
  EXPECT_FALSE(heads[0].quantile(0.5));
}

TEST(EvidenceTexts, APieceHasItsOwnPlaceAndItsWholeWord) {
  CorpusBlock block = letters({"ab"});
  block.text.sources = {"über läufe"};
  block.source.ids = {{7, 8, 9}};
  block.source.offsets = {
      {{0, 4}, {4, 8}, {8, 10}}};  // with the space in front, as byte-level tokenizers may have it
  block.source.words = {{0, 1, 1}};
  EvidenceTexts texts;
  texts.begin(block);
  const EvidenceToken piece = texts.keys(AttentionKind::kEncoderSelf, 0).side->place_of(1);
  EXPECT_EQ(std::pair(piece.begin, piece.end), std::pair(5, 8));
  EXPECT_EQ(piece.word, "läufe");
}

}  // namespace
}  // namespace mh
