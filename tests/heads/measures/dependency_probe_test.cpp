#include "multihead/heads/measures/dependency_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/measures/spanning_tree.h"
#include "tests/heads/measures/synthetic.h"

namespace mh::test {
namespace {

double worth(const DoubleMatrix& scores, const std::vector<int>& heads) {
  double sum = 0;
  for (size_t j = 0; j < heads.size(); ++j) {
    if (heads[j] >= 0) sum += scores(heads[j], static_cast<int64_t>(j));
  }
  return sum;
}

std::vector<Word> tree_of(const std::vector<int>& heads) {
  std::vector<Word> tree(heads.size());
  for (size_t j = 0; j < heads.size(); ++j) tree[j].head = heads[j];
  return tree;
}

/// Of all trees with this root.
double most_worth(const DoubleMatrix& scores, int root) {
  const auto n = static_cast<int>(scores.rows());
  std::vector<int> heads(static_cast<size_t>(n), 0);
  double best = -std::numeric_limits<double>::infinity();
  const auto count = static_cast<int>(std::pow(n, n));
  for (int code = 0; code < count; ++code) {
    for (int j = 0, rest = code; j < n; ++j, rest /= n)
      heads[static_cast<size_t>(j)] = j == root ? -1 : rest % n;
    if (is_tree(tree_of(heads))) best = std::max(best, worth(scores, heads));
  }
  return best;
}

TEST(SpanningTree, IsTheBestOfAllTrees) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(random.below(5)),
              root = static_cast<int>(random.below(static_cast<uint32_t>(n)));
    DoubleMatrix scores(n, n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) scores(i, j) = random.uniform() * 10 - 7;
    }
    const std::vector<int> found = maximum_spanning_tree(scores, root);
    ASSERT_TRUE(is_tree(tree_of(found))) << round;
    EXPECT_EQ(found[static_cast<size_t>(root)], -1);
    EXPECT_NEAR(worth(scores, found), most_worth(scores, root), 1e-9) << round;
  }
}

TEST(SpanningTree, BreaksACircleWhereItCostsLeast) {
  // 1 and 2 read each other most; the root reaches 2 at a loss of 1, and 1 at a loss of 5.
  DoubleMatrix scores(3, 3);
  scores(1, 2) = 10, scores(2, 1) = 10, scores(0, 1) = 5, scores(0, 2) = 9;
  EXPECT_THAT(maximum_spanning_tree(scores, 0), testing::ElementsAre(-1, 2, 0));
}

TEST(SpanningTree, RefusesWhatIsNotFinite) {
  DoubleMatrix scores(2, 2);
  EXPECT_THROW(maximum_spanning_tree(scores, 2), UsageError);
  scores(0, 1) = std::nan("");
  EXPECT_THROW(maximum_spanning_tree(scores, 0), UsageError);
}

/// Sentences of random trees; head 0 reads the word's head, head 1 is read by it, head 2 reads the next word.
struct Treebank {
  CorpusBlock block;
  std::vector<std::vector<std::vector<std::vector<double>>>> weights;  // [sentence][head]

  explicit Treebank(uint64_t seed) {
    Random random(seed);
    for (int s = 0; s < 40; ++s) {
      const int n = 3 + static_cast<int>(random.below(6));
      std::vector<int> heads(static_cast<size_t>(n), -1), order(static_cast<size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      for (int i = n - 1; i > 0; --i)
        std::swap(order[static_cast<size_t>(i)], order[random.below(static_cast<uint32_t>(i) + 1)]);
      for (int i = 1; i < n; ++i)
        heads[static_cast<size_t>(order[static_cast<size_t>(i)])] =
            order[random.below(static_cast<uint32_t>(i))];
      std::vector<int> reads(heads.size()), next(heads.size());
      for (int j = 0; j < n; ++j) {
        reads[static_cast<size_t>(j)] = heads[static_cast<size_t>(j)] < 0 ? j : heads[static_cast<size_t>(j)];
        next[static_cast<size_t>(j)] = (j + 1) % n;
      }
      WordOfToken words(heads.size());
      std::iota(words.begin(), words.end(), 0);
      block.encoder_trees.trees.push_back(tree_of(heads));
      block.encoder_trees.word_of_token.push_back(words);
      weights.push_back({one_hot(reads, n), one_hot(next, n)});
    }
  }
};

TEST(DependencyProbe, LearnsWhichHeadHasTheTree) {
  const Treebank bank(3);
  DependencyProbe probe(
      {attention_named("encoder.0.self_attention", 1), attention_named("encoder.1.self_attention", 2)});
  probe.begin(bank.block);
  EXPECT_TRUE(probe.wants_weights(attention_named("encoder.1.self_attention")));
  EXPECT_FALSE(probe.wants_weights(attention_named("decoder.0.self_attention")));
  const auto pass = [&] {
    Synthetic first("encoder.0.self_attention", 1), second("encoder.1.self_attention", 2);
    for (const auto& sentence : bank.weights) {
      first.add({sentence[1]});
      second.add({sentence[1], sentence[0]});
    }
    probe.weights(first.observed());
    probe.weights(second.observed());
  };
  for (int epoch = 0; epoch < 60; ++epoch) pass();
  EXPECT_EQ(probe.words(), 0) << "nothing is counted while it learns";
  probe.use(DependencyProbe::Use::kCount);
  pass();
  int64_t words = 0;
  for (const auto& tree : bank.block.encoder_trees.trees) words += std::ssize(tree) - 1;
  EXPECT_EQ(probe.words(), words);
  EXPECT_EQ(probe.right(), words);
  const auto heads = probe.heads();
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_EQ(heads[2].name, "encoder.1.self_attention.1");
  EXPECT_GT(heads[2].reads, heads[0].reads + 1);
  EXPECT_GT(heads[2].reads, heads[2].read + 1) << "the word reads its head, not the other way round";
}

// All words of this one squared would be 90 GB a head.
TEST(DependencyProbe, WordsThatAreCutTakeNoMemory) {
  constexpr int kWords = 150'000;
  std::vector<int> heads(kWords, 0);
  heads[0] = -1;
  CorpusBlock block;
  block.encoder_trees.trees.push_back(tree_of(heads));
  block.encoder_trees.word_of_token.push_back({0, 1, 2, 3, 4});
  DependencyProbe probe({attention_named("encoder.0.self_attention")});
  probe.begin(block);
  Synthetic weights("encoder.0.self_attention", 1);
  weights.add({one_hot({1, 0, 0, 0, 0}, 5)});
  for (int epoch = 0; epoch < 20; ++epoch) probe.weights(weights.observed());
  probe.use(DependencyProbe::Use::kCount);
  probe.weights(weights.observed());
  EXPECT_EQ(probe.words(), kWords - 1);
  EXPECT_EQ(probe.right(), 4);
}

}  // namespace
}  // namespace mh::test
