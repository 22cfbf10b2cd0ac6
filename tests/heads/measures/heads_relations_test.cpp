#include "multihead/heads/measures/heads_relations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/measures/heads_stats.h"
#include "multihead/heads/measures/induction.h"
#include "multihead/models/causal_model.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/text/train_tokenizer.h"
#include "tests/heads/measures/synthetic.h"

namespace mh::test {
namespace {

/// 40 sentences of two words, of which the second hangs on the first. Head 0 is right in every even sentence, head 1 in three
/// of four of all, head 2 never.
struct TwoWords {
  CorpusBlock block;
  Synthetic weights{"encoder.0.self_attention", 3};
  TwoWords() {
    for (int s = 0; s < 40; ++s) {
      block.encoder_trees.trees.push_back({word("a", -1, "root"), word("b", 0, "obj"), word("c", 0, "det")});
      block.encoder_trees.word_of_token.push_back({0, 1, 2});
      const auto reads = [](bool right) { return one_hot({1, right ? 0 : 2, 0}, 3); };
      weights.add({reads(s % 2 == 0), reads(s % 8 < 6), reads(false)});
    }
  }
};

TEST(Relations, ChoosesOnOneHalfAndScoresOnTheOther) {
  TwoWords text;
  RelationScorer scorer;
  scorer.begin(text.block);
  scorer.weights(text.weights.observed());
  const auto chosen = scorer.chosen_and_scored();
  const auto found = std::find_if(chosen.begin(), chosen.end(), [](const RelationScore& score) {
    return score.relation == "obj" && score.direction == Direction::kToHead;
  });
  ASSERT_NE(found, chosen.end());
  EXPECT_EQ(found->head, 0) << "always right on the even sentences";
  EXPECT_EQ(found->support, 20);
  EXPECT_EQ(found->found, 0) << "and never on the odd ones";
  EXPECT_EQ(found->offset, -1);
  EXPECT_EQ(found->baseline(), 1);
  EXPECT_EQ(found->interval.half, 0);
  EXPECT_EQ(found->gain_interval.mean, -1);
  EXPECT_EQ(chosen[0].relation, kAllRelations);
  EXPECT_EQ(chosen[0].support, 40) << "obj and det";
  EXPECT_TRUE(scorer.chosen_and_scored(21).size() == 2) << "all relations alone have so many words";

  for (const RelationScore& score : scorer.scores()) {
    if (score.relation != "obj" || score.direction != Direction::kToHead || score.head != 1) continue;
    EXPECT_EQ(score.score(), 0.75);
    EXPECT_GT(score.interval.half, 0);
    EXPECT_NEAR(score.interval.mean, 0.75, 1e-12);
  }
}

TEST(Relations, BlocksAddUp) {
  TwoWords whole;
  RelationScorer at_once, in_blocks;
  at_once.begin(whole.block);
  at_once.weights(whole.weights.observed());
  for (int s = 0; s < 40; ++s) {
    CorpusBlock block;
    block.first = s;
    block.encoder_trees.trees = {whole.block.encoder_trees.trees[static_cast<size_t>(s)]};
    block.encoder_trees.word_of_token = {{0, 1, 2}};
    Synthetic weights("encoder.0.self_attention", 3);
    const auto reads = [](bool right) { return one_hot({1, right ? 0 : 2, 0}, 3); };
    weights.add({reads(s % 2 == 0), reads(s % 8 < 6), reads(false)});
    in_blocks.begin(block);
    in_blocks.weights(weights.observed());
  }
  const auto a = at_once.chosen_and_scored(), b = in_blocks.chosen_and_scored();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name(), b[i].name());
    EXPECT_EQ(a[i].found, b[i].found);
    EXPECT_EQ(a[i].interval.half, b[i].interval.half);
  }
}

/// A random causal model over words.
ModelFolder small_causal() {
  ModelFolder folder;
  folder.path = "small";
  folder.model_type = "gpt2";
  const std::vector<std::string> lines{"the small dog sees a cat", "a cat runs home", "dogs see the cats"};
  folder.tokenizer = train_bpe(lines, {.vocabulary_size = 60, .least_pair_count = 1});
  CausalConfig config;
  config.embedding = {.vocabulary = folder.tokenizer->size(), .d_model = 12};
  config.max_positions = 31;
  config.stack = {.name = "decoder", .d_model = 12, .mask = StackMask::causal()};
  config.stack.layers.assign(2, {.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 13}});
  auto model = std::make_unique<CausalModel>(config);
  model->initialise(7);
  folder.model = std::move(model);
  return folder;
}

TEST(HeadRelations, RandomHeadsHaveTheSameNumbersInAnotherOrder) {
  const ModelFolder folder = small_causal();
  const auto random = with_random_queries_and_keys(*folder.model, 3);
  const auto sorted = [](const Model& model, const char* name) {
    const LayerWeights layer = weights_of(model.attention("decoder.1.self_attention"), 12);
    const ConstMatrixView values = layer.values.at(name).view();
    std::vector<float> numbers(values.data, values.data + values.rows * values.cols);
    const std::vector<float> as_they_are = numbers;
    std::sort(numbers.begin(), numbers.end());
    return std::pair(numbers, as_they_are);
  };
  for (const char* name : {"w_q", "w_k"}) {
    EXPECT_EQ(sorted(*folder.model, name).first, sorted(*random, name).first);
    EXPECT_NE(sorted(*folder.model, name).second, sorted(*random, name).second);
  }
  EXPECT_EQ(sorted(*folder.model, "w_v").second, sorted(*random, "w_v").second);
}

TEST(HeadRelations, NeedTrees) {
  const ModelFolder folder = small_causal();
  const HeadsText text{.sources = {"a cat runs home"}};
  TextCorpus corpus(text);
  EXPECT_THAT([&] { heads_relations(folder, corpus); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("has no dependency trees")));
}

TEST(HeadRelations, OneSentenceHasScoresWithoutIntervals) {
  const ModelFolder folder = small_causal();
  HeadsText text{.sources = {"a cat runs home"}};
  text.source_trees = {
      {word("a", 1, "det"), word("cat", 2, "nsubj"), word("runs", -1, "root"), word("home", 2, "advmod")}};
  TextCorpus corpus(text);
  const RelationsReport report = heads_relations(folder, corpus);
  EXPECT_EQ(report.read.sentences, 1);
  EXPECT_TRUE(report.chosen.empty()) << "there is no other half";
  ASSERT_FALSE(report.all.empty());
  EXPECT_TRUE(std::isinf(report.all[0].interval.half));
  corpus.restart();
  EXPECT_THAT([&] { heads_relations(folder, corpus, {.probe_epochs = 1}); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("give at least two sentences")));
}

TEST(Induction, AgreesWithTheWeightsOfTheSameSequences) {
  const ModelFolder folder = small_causal();
  const auto scores = induction_scores(folder, {.sequences = 5, .length = 11, .seed = 2});
  ASSERT_EQ(scores.size(), 6u);
  for (const InductionScore& score : scores) {
    // Random heads spread their weights: about 1 / t at position t.
    EXPECT_GT(score.previous_token, 0.01);
    EXPECT_LT(score.previous_token, 0.5);
    EXPECT_GT(score.induction, 0.01);
    EXPECT_LT(score.induction, 0.2);
  }
  EXPECT_EQ(induction_scores(folder, {.sequences = 5, .length = 11, .seed = 2})[3].induction,
            scores[3].induction);
  EXPECT_NE(induction_scores(folder, {.sequences = 5, .length = 11, .seed = 3})[3].induction,
            scores[3].induction);
  // The model reads 31 tokens, so that 15 are repeated.
  EXPECT_NO_THROW(induction_scores(folder));
}

TEST(HeadStats, OfACausalModelHaveScoresOnRepeatedTokens) {
  const ModelFolder folder = small_causal();
  const HeadsText text{.sources = {"a cat runs home", "", "dogs see the small cats"}};
  TextCorpus corpus(text);
  const StatsReport report = heads_stats(folder, corpus);
  EXPECT_EQ(report.read.sentences, 2);
  ASSERT_EQ(report.heads.size(), 6u);
  for (const HeadStats& head : report.heads) {
    EXPECT_TRUE(head.repeated);
    EXPECT_TRUE(head.roles.on_rarest);
    EXPECT_EQ(head.figures.name(), head.roles.name());
    EXPECT_EQ(head.figures.name(), head.repeated->name());
  }
  HeadsText blank{.sources = {" ", ""}};
  TextCorpus nothing(blank);
  EXPECT_THAT([&] { heads_stats(folder, nothing); },
              testing::ThrowsMessage<FormatError>(testing::HasSubstr("is empty")));
}

}  // namespace
}  // namespace mh::test
