#include "multihead/heads/measures/head_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/measures/heads_stats.h"
#include "multihead/heads/sites/words.h"
#include "tests/heads/measures/synthetic.h"

namespace mh::test {
namespace {

using testing::ElementsAre;

TEST(Words, AreRunsOfLettersAndSingleMarks) {
  std::vector<std::string> forms;
  for (const Word& word : words_in("Don't  go\u00a0to Müll-City, 3rd\tsnake_case!!"))
    forms.push_back(word.form);
  EXPECT_THAT(forms, ElementsAre("Don", "'", "t", "go", "to", "Müll", "-", "City", ",", "3rd", "snake_case",
                                 "!", "!"));
  EXPECT_TRUE(words_in(" \u3000").empty());
}

/// [CLS] the cat naps [SEP], and "the cat sees the dog" elsewhere, so that "naps" is the rarest.
struct Cats {
  HeadsText corpus{.sources = {"the cat naps", "the cat sees the cat"}};
  CorpusBlock block;
  WordCounts counts;
  Cats() {
    counts.add(corpus);
    block.text.sources = {"the cat naps"};
    block.source.ids = {{1, 5, 6, 7, 2}};
    block.source.offsets = {{{0, 0}, {0, 3}, {4, 7}, {8, 12}, {0, 0}}};
    block.source.words = {{-1, 0, 1, 2, -1}};
  }
};

TEST(HeadRoles, CountsTheQueriesThatReadTheRarestWord) {
  const Cats cats;
  EXPECT_EQ(cats.counts.of("the"), 3);
  EXPECT_EQ(cats.counts.of("naps"), 1);
  EXPECT_EQ(cats.counts.of("dog"), 0);
  HeadRoleObserver observer(cats.counts);
  observer.begin(cats.block);
  Synthetic weights("encoder.0.self_attention", 2);
  weights.add({one_hot({0, 3, 3, 0, 3}, 5), one_hot({3, 2, 1, 3, 3}, 5)});
  observer.weights(weights.observed());
  const auto heads = observer.heads();
  ASSERT_EQ(heads.size(), 2u);
  // Of the three words; what special tokens read does not count.
  EXPECT_NEAR(heads[0].on_rarest.value(), 2.0 / 3, 1e-12);
  EXPECT_NEAR(heads[1].on_rarest.value(), 1.0 / 3, 1e-12);
  EXPECT_NEAR(heads[0].rarest_by_chance.value(), 1.0 / 5, 1e-12);
  EXPECT_FALSE(heads[0].pattern()) << "five tokens are too few";
}

/// T tokens, the first and last of them special, T - 2 words.
CorpusBlock block_of(int64_t tokens) {
  CorpusBlock block;
  block.text.sources = {"x"};
  block.source.ids = {std::vector<int32_t>(static_cast<size_t>(tokens), 5)};
  block.source.offsets = {std::vector<std::pair<int32_t, int32_t>>(static_cast<size_t>(tokens), {0, 1})};
  block.source.offsets[0].front() = block.source.offsets[0].back() = {0, 0};
  return block;
}

TEST(HeadRoles, PatternsFollowTheSharesOfTheMap) {
  constexpr int kTokens = 12;
  const CorpusBlock block = block_of(kTokens);
  const WordCounts counts;
  HeadRoleObserver observer(counts);
  observer.begin(block);
  Synthetic weights("encoder.0.self_attention", 4);
  std::vector<int> first(kTokens, 0), previous(kTokens);
  for (int i = 0; i < kTokens; ++i) previous[static_cast<size_t>(i)] = std::max(0, i - 1);
  auto both = one_hot(first, kTokens);
  const auto diagonal = one_hot(previous, kTokens);
  for (size_t i = 0; i < both.size(); ++i) {
    for (size_t j = 0; j < both.size(); ++j)
      both[i][j] = 0.4 * both[i][j] + 0.4 * diagonal[i][j] + 0.2 / kTokens;
  }
  const std::vector<std::vector<double>> even(kTokens, std::vector<double>(kTokens, 1.0 / kTokens));
  weights.add({one_hot(first, kTokens), diagonal, both, even});
  observer.weights(weights.observed());
  std::vector<std::string_view> patterns;
  for (const HeadRoles& head : observer.heads()) {
    EXPECT_FALSE(head.on_rarest) << "no words are known";
    patterns.push_back(name_of(head.pattern().value()));
  }
  EXPECT_THAT(patterns, ElementsAre("vertical", "diagonal", "vertical+diagonal", "heterogeneous"));
}

TEST(HeadRoles, BlocksAreThoseOfPairs) {
  constexpr int kTokens = 13;
  CorpusBlock block = block_of(kTokens);
  block.text.pairs = {"y"};
  block.source.offsets[0][6] = {0, 0};  // the separator between the texts
  const WordCounts counts;
  HeadRoleObserver observer(counts);
  observer.begin(block);
  std::vector<std::vector<double>> own(kTokens, std::vector<double>(kTokens, 0));
  for (size_t i = 0; i < own.size(); ++i) {
    for (size_t j = i < 7 ? 1 : 7; j < (i < 7 ? 6u : 12u); ++j) own[i][j] = 0.2;
  }
  Synthetic weights("encoder.0.self_attention", 1);
  weights.add({own});
  observer.weights(weights.observed());
  EXPECT_EQ(observer.heads()[0].pattern(), AttentionPattern::kBlock);
}

TEST(HeadStats, TheFirstRoleThatFitsIsTheHeads) {
  HeadStats head;
  EXPECT_FALSE(head.role());
  head.figures.on_separators = 0.5;
  EXPECT_EQ(head.role(), HeadRole::kSeparator);
  head.figures.on_first = 0.5;
  EXPECT_EQ(head.role(), HeadRole::kFirstToken);
  head.roles.on_rarest = 0.6;
  EXPECT_EQ(head.role(), HeadRole::kRareWord);
  head.repeated = InductionScore{.attention = "decoder.0.self_attention", .induction = 0.7};
  EXPECT_EQ(head.role(), HeadRole::kInduction);
  head.figures.most_at_offset[0] = 0.9;
  EXPECT_EQ(head.role(), HeadRole::kOtherOffset);
  head.figures.most_at_offset[2] = 0.95;
  EXPECT_EQ(head.role(), HeadRole::kPreviousToken);
}

}  // namespace
}  // namespace mh::test
