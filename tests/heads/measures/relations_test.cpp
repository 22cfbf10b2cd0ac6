#include "multihead/heads/measures/relations.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/sites/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/heads/measures/word_alignment.h"
#include "multihead/text/tokenizer.h"
#include "tests/heads/measures/synthetic.h"

namespace mh {
namespace {

using test::attention_named;
using test::one_hot;
using test::Synthetic;
using test::word;

// dogs(0) chase(1) a(2) big(3) cat(4)
const std::vector<Word> kDogs{word("dogs", 1, "nsubj"), word("chase", -1, "root"), word("a", 4, "det"),
                              word("big", 4, "amod"), word("cat", 1, "obj")};
// she(0) eats(1) cake(2)
const std::vector<Word> kCake{word("she", 1, "nsubj"), word("eats", -1, "root"), word("cake", 1, "obj")};

const RelationScore& find(const std::vector<RelationScore>& scores, int head, const char* relation,
                          Direction direction) {
  for (const RelationScore& score : scores) {
    if (score.head == head && score.relation == relation && score.direction == direction) return score;
  }
  throw std::runtime_error(relation);
}

TEST(Relations, CountsWordsWhoseMostReadWordIsRightInBothDirections) {
  const CorpusBlock block{.encoder_trees = {{kDogs, kCake}, {{0, 1, 2, 3, 4, -1}, {0, 1, 2, -1}}}};
  RelationScorer scorer;
  scorer.begin(block);
  // Head 0: every word reads its head, in the second sentence all read the end token most, and "cake" has the
  // rest on "she". Head 1: "chase" reads "cat", "eats" reads "she", the others the end token alone.
  Synthetic weights("encoder.0.self_attention", 2);
  weights.add({one_hot({1, 4, 4, 4, 1, 5}, 6), one_hot({5, 4, 5, 5, 5, 5}, 6)});
  weights.add({{{0, .2, .1, .7}, {.1, .0, .2, .7}, {.2, .1, 0, .7}, {0, 0, 0, 1}}, one_hot({3, 0, 3, 3}, 4)});
  scorer.weights(weights.observed());
  const auto scores = scorer.scores();
  ASSERT_EQ(scores.size(), 2u * 4 * 3);

  EXPECT_EQ(find(scores, 0, "nsubj", Direction::kToHead).support, 2);
  EXPECT_EQ(find(scores, 0, "nsubj", Direction::kToHead).found, 2);  // the end token is set aside
  EXPECT_EQ(find(scores, 0, "obj", Direction::kToHead).found, 1);    // "cake" reads "she"
  EXPECT_EQ(find(scores, 0, "det", Direction::kToHead).score(), 1);
  EXPECT_EQ(find(scores, 0, "obj", Direction::kToDependent).found, 2);  // "chase" -> "cat", "eats" -> "cake"
  EXPECT_EQ(find(scores, 1, "obj", Direction::kToDependent).found, 1);
  EXPECT_EQ(find(scores, 1, "nsubj", Direction::kToDependent).found, 1);
  EXPECT_EQ(find(scores, 1, "det", Direction::kToHead).found, 0);

  // The best fixed offset: obj -> head is 3 and 1 to the left, nsubj -> head always the next word.
  EXPECT_EQ(find(scores, 0, "nsubj", Direction::kToHead).offset, 1);
  EXPECT_EQ(find(scores, 0, "nsubj", Direction::kToHead).baseline(), 1);
  EXPECT_EQ(find(scores, 0, "obj", Direction::kToHead).baseline(), 0.5);

  const auto best = best_heads(scores, 2);
  for (const auto& score : best) EXPECT_GE(score.support, 2);
  EXPECT_EQ(best.size(), 6u);  // nsubj and obj

  // Columns: "cat" is read by "chase" (and "a", "big" in head 0), "she" by "eats" in both.
  EXPECT_EQ(find(scores, 1, "obj", Direction::kReadByHead).found, 1);
  EXPECT_EQ(find(scores, 1, "nsubj", Direction::kReadByHead).found, 1);
  EXPECT_EQ(find(scores, 1, "nsubj", Direction::kReadByHead).baseline(), 1);
}

TEST(Relations, AWordWithSeveralSuchDependentsIsAskedOnce) {
  // "cat" has two amod: reading either is right; the fixed offset -1 is right too.
  const std::vector<Word> tree{word("small", 2, "amod"), word("black", 2, "amod"), word("cat", -1, "root")};
  const CorpusBlock block{.encoder_trees = {{tree}, {{0, 1, 2}}}};
  RelationScorer scorer;
  scorer.begin(block);
  Synthetic weights("encoder.0.self_attention", 1);
  weights.add({one_hot({2, 2, 0}, 3)});
  scorer.weights(weights.observed());
  const auto scores = scorer.scores();
  const RelationScore& down = find(scores, 0, "amod", Direction::kToDependent);
  EXPECT_EQ(down.support, 1);
  EXPECT_EQ(down.found, 1);
  EXPECT_EQ(down.found_at_offset, 1);
  EXPECT_EQ(find(scores, 0, "amod", Direction::kToHead).support, 2);
}

TEST(Relations, TheDecoderCountsForTheWordItReads) {
  const CorpusBlock block{.decoder_trees = {{kCake}, {{-1, 0, 1, 2}}}};
  RelationScorer scorer;
  scorer.begin(block);
  EXPECT_FALSE(scorer.wants_weights(attention_named("encoder.0.self_attention")));
  EXPECT_FALSE(scorer.wants_weights(attention_named("decoder.0.cross_attention")));
  ASSERT_TRUE(scorer.wants_weights(attention_named("decoder.0.self_attention")));
  // Inputs: <start> she eats cake. "eats" reads "she", "cake" reads "eats".
  Synthetic weights("decoder.0.self_attention", 1);
  weights.add({one_hot({0, 0, 1, 2}, 4)});
  scorer.weights(weights.observed());
  const auto scores = scorer.scores();
  EXPECT_EQ(find(scores, 0, "obj", Direction::kToHead).found, 1);
  EXPECT_EQ(find(scores, 0, "nsubj", Direction::kToDependent).found, 1);
  // "she" cannot read "eats", which comes later: nobody is asked.
  for (const RelationScore& score : scores) {
    EXPECT_FALSE(score.relation == "nsubj" && score.direction == Direction::kToHead);
    EXPECT_FALSE(score.relation == "obj" && score.direction != Direction::kToHead);
    EXPECT_EQ(score.offset < 0, score.direction != Direction::kReadByHead) << "an earlier word";
  }
}

/// A sentence of so many words, each of which has the first one as its head; the model reads five of them.
CorpusBlock cut_sentence(int words) {
  std::vector<Word> tree{word("first", -1, "root")};
  for (int i = 1; i < words; ++i) tree.push_back(word("next", 0, "dep"));
  return {.encoder_trees = {{tree}, {{-1, 0, 1, 2, 3, 4, -1}}}};
}

// All words of this one squared would be 90 GB.
TEST(Relations, WordsThatAreCutTakeNoMemory) {
  constexpr int kWords = 150'000;
  const CorpusBlock block = cut_sentence(kWords);
  RelationScorer scorer;
  scorer.begin(block);
  Synthetic weights("encoder.0.self_attention", 1);
  weights.add({one_hot({0, 4, 1, 1, 1, 1, 0}, 7)});  // the root reads "next", the others read the root
  scorer.weights(weights.observed());
  const auto scores = scorer.scores();
  EXPECT_EQ(find(scores, 0, "dep", Direction::kToHead).support, kWords - 1);
  EXPECT_EQ(find(scores, 0, "dep", Direction::kToHead).found, 4);
  EXPECT_EQ(find(scores, 0, "dep", Direction::kToDependent).found, 1);
}

TEST(Relations, AreNotAsManyAsWords) {
  std::vector<Word> tree{word("first", -1, "root")};
  for (int i = 0; i < 1200; ++i) tree.push_back(word("next", 0, ("own" + std::to_string(i)).c_str()));
  const CorpusBlock block{.encoder_trees = {{tree}, {{0, 1, 2}}}};
  RelationScorer scorer;
  EXPECT_THAT([&] { scorer.begin(block); },
              testing::ThrowsMessage<FormatError>(testing::HasSubstr("more than 1000 different relations")));
}

TEST(Words, PiecesAddUpOverKeysAndAverageOverQueries) {
  // Tokens: un|happy dog </s>
  const std::vector<int32_t> words{0, 0, 1, -1};
  const std::vector<std::vector<double>> rows{
      {.1, .2, .3, .4}, {.4, .1, .4, .1}, {.5, .25, .125, .125}, {1, 0, 0, 0}};
  Synthetic weights("encoder.0.self_attention", 1);
  weights.add({rows});
  const Tensor merged = merge_to_words(weights.observed().matrix(0, 0), words, 2, words, 2);
  EXPECT_FLOAT_EQ(merged(0, 0), (.1f + .2f + .4f + .1f) / 2);
  EXPECT_FLOAT_EQ(merged(0, 1), (.3f + .4f) / 2);
  EXPECT_FLOAT_EQ(merged(1, 0), .75f);
  EXPECT_FLOAT_EQ(merged(1, 1), .125f);
}

TEST(Words, TokensFindTheirWordsByCharacters) {
  // "Müde Hunde." as Mü|de| Hu|nde|.|</s>; offsets count characters, a leading space may belong to a token.
  Encoding encoding;
  encoding.offsets = {{0, 2}, {2, 4}, {4, 7}, {7, 10}, {10, 11}, {0, 0}};
  const std::vector<Word> words{word("M\u00fcde", 1, "amod"), word("Hunde", -1, "root"),
                                word(".", 1, "punct")};
  EXPECT_THAT(words_of_tokens(encoding.offsets, "M\u00fcde Hunde.", words, "line 1"),
              testing::ElementsAre(0, 0, 1, 1, 2, -1));
}

TEST(Words, MayHaveOrBeWhiteSpace) {
  // "10 000 x" with a no-break space in the first word, and one that is a word.
  const std::vector<Word> words{word("10\u00a0000", -1, "root"), word("\u00a0", 0, "dep"),
                                word("x", 0, "dep")};
  const std::vector<std::pair<int32_t, int32_t>> offsets = {{0, 2}, {3, 6}, {7, 8}, {9, 10}};
  EXPECT_THAT(words_of_tokens(offsets, "10\u00a0000 \u00a0 x", words, "line 1"),
              testing::ElementsAre(0, 0, 1, 2));
}

TEST(Words, SaysWhereTreeAndTextPart) {
  const auto message = [](const char* text) {
    try {
      words_of_tokens({}, text, kCake, "line 7");
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message("she  eats cake"), "");
  EXPECT_EQ(message("she ate cake"),
            "line 7: expected the text to go on with 'eats', the tree's word 2, got 'ate'");
  EXPECT_EQ(message("she eats"), "line 7: the text ends before 'cake', the tree's word 3");
  EXPECT_THAT(message("she eats cake ."), testing::HasSubstr("got '.'"));
}

TEST(WordAlignment, CountsLinksOfTheStrongestWeight) {
  // Source: the(0) cat(1) sleeps(2) </s>; target: die(0) Katze(1) schläft(2) jetzt(3); "jetzt" aligns to
  // nothing.
  const CorpusBlock block{
      .alignments = {{{{0, 0}, {1, 1}, {2, 2}}}, {{0, 1, 2, -1}}, {{0, 1, 2, 3}}, {3}, {4}}};
  AlignmentScorer scorer;
  EXPECT_FALSE(scorer.baseline());
  scorer.begin(block);
  EXPECT_FALSE(scorer.wants_weights(attention_named("decoder.0.self_attention")));
  // Head 0 is right where the word is predicted and rests on the end token for "jetzt"; head 1 is right where
  // it is read.
  Synthetic weights("decoder.1.cross_attention", 2);
  weights.add({one_hot({0, 1, 2, 3, 3}, 4), one_hot({3, 0, 1, 2, 0}, 4)});
  scorer.weights(weights.observed());
  const auto scores = scorer.scores();
  ASSERT_EQ(scores.size(), 6u);
  EXPECT_EQ(scores[0].accuracy(), 1);
  EXPECT_EQ(scores[0].precision(), 1);
  EXPECT_EQ(scores[0].recall(), 1);
  EXPECT_EQ(scores[0].error_rate(), 0);
  EXPECT_EQ(scores[0].made, 3);
  EXPECT_EQ(scores[1].query, AlignedQuery::kReads);
  EXPECT_EQ(scores[1].found, 0);
  EXPECT_EQ(scores[3].name(), "decoder.1.cross_attention.1");
  EXPECT_EQ(scores[3].found, 3);
  EXPECT_NEAR(scores[3].error_rate(), 1 - 2 * 3.0 / (4 + 3), 1e-12);  // "jetzt" -> "the" is one too many
  EXPECT_EQ(best_aligner(scores).name(), "decoder.1.cross_attention.0");
  EXPECT_EQ(scores[3].precision(), 0.75);
  // Of the mean of both, ties go to the first key: "die" "Katze" "schläft" read 0 0 1, "jetzt" 2.
  EXPECT_EQ(scores[4].name(), "decoder.1.cross_attention.mean");
  ASSERT_TRUE(scorer.baseline());
  EXPECT_EQ(scorer.baseline()->offset, 0);
  EXPECT_EQ(scorer.baseline()->accuracy(), 1);
  EXPECT_EQ(scorer.baseline()->made, 3);  // "jetzt" has no source word at its place
}

TEST(WordAlignment, WordsThatAreCutTakeNoMemory) {
  constexpr int32_t kWords = 150'000;
  Alignment links{{0, 1}, {1, 0}, {kWords - 1, kWords - 1}};
  const CorpusBlock block{.alignments = {.alignments = {links},
                                         .source_words = {{0, 1, -1}},
                                         .target_words = {{0, 1}},
                                         .source_sizes = {kWords},
                                         .target_sizes = {kWords}}};
  AlignmentScorer scorer;
  scorer.begin(block);
  Synthetic weights("decoder.0.cross_attention", 1);
  weights.add({one_hot({1, 0, 2}, 3)});
  scorer.weights(weights.observed());
  const std::vector<AlignmentScore> scores = scorer.scores();
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].gold, 3);
  EXPECT_EQ(scores[0].made, 2);
  EXPECT_EQ(scores[0].right, 2);
}

TEST(WordAlignment, TheBestAlignerIsAHeadAndNotTheirMean) {
  const std::vector<AlignmentScore> scores{
      {.attention = "a", .head = 0, .made = 4, .right = 1, .gold = 4},
      {.attention = "a", .head = 1, .made = 4, .right = 2, .gold = 4},
      {.attention = "a", .head = AlignmentScore::kMeanOfHeads, .made = 4, .right = 4, .gold = 4}};
  EXPECT_EQ(best_aligner(scores).head, 1);
}

}  // namespace
}  // namespace mh
