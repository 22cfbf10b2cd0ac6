#include "multihead/heads/measures/similar_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/interval.h"
#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "tests/heads/measures/synthetic.h"

namespace mh {
namespace {

using test::one_hot;
using test::Synthetic;
constexpr double kRounding = 1e-6;  // weights are float32
using Rows = std::vector<std::vector<double>>;

SimilarHeadsObserver::Options with_seed(uint64_t seed) {
  return {.seed = seed};
}

ComparedAttention attention_of(const std::string& name, int heads, int key_heads = 0,
                               Mask mask = Mask::none()) {
  return {.name = name,
          .place = test::attention_named(name).place,
          .heads = heads,
          .key_heads = key_heads > 0 ? key_heads : heads,
          .mask = mask};
}

const Rows kEven(3, std::vector<double>(3, 1.0 / 3));

TEST(SimilarHeads, AnEvenAndAOneHotHeadDivergeAsTheFormulaSaysAndAsMuchByChance) {
  SimilarHeadsObserver observer(
      {attention_of("encoder.0.self_attention", 1), attention_of("encoder.2.self_attention", 1)},
      with_seed(3));
  Synthetic first("encoder.0.self_attention", 1), second("encoder.2.self_attention", 1);
  first.add({one_hot({0, 2, 1}, 3)});
  second.add({kEven});
  observer.weights(first.observed());
  EXPECT_TRUE(observer.kinds().empty()) << "the other layer is still to come";
  observer.weights(second.observed());
  const ComparedHeads found = observer.kinds().at(0);
  const double js = (2.0 / 3) * -std::log(2.0 / 3) + 2 * (1.0 / 6) * -std::log(1.0 / 6) - 0.5 * std::log(3.0);
  EXPECT_EQ(found.kind, AttentionKind::kEncoderSelf);
  EXPECT_EQ(found.queries, 3);
  EXPECT_NEAR(found.divergence_of(0, 1), js, kRounding);
  EXPECT_EQ(found.divergence_of(1, 0), found.divergence_of(0, 1));
  EXPECT_EQ(found.divergence_of(1, 1), 0);
  EXPECT_NEAR(found.null_of(0, 1), js, kRounding) << "however a one-hot row is permuted";
  EXPECT_NEAR(found.heads[0].entropy, 0, kRounding);
  EXPECT_NEAR(found.heads[1].entropy, std::log(3.0), kRounding);
  EXPECT_EQ(found.heads[1].name(), "encoder.2.self_attention.0");
  EXPECT_FALSE(found.within_layers) << "there is one head in each layer";
  EXPECT_FALSE(found.layers[0].within);
  ASSERT_TRUE(found.between_layers);
  EXPECT_EQ(found.between_layers->pairs, 1);
  EXPECT_NEAR(found.between_layers->ratio->mean, 1, kRounding);
  EXPECT_TRUE(std::isinf(found.between_layers->ratio->half)) << "of one sentence";
  EXPECT_TRUE(std::isinf(found.between_layers->divergence.half));
}

TEST(SimilarHeads, EqualHeadsDoNotDivergeButTheirNullsDo) {
  const Rows rows{{0.7, 0.2, 0.1}, {0.1, 0.1, 0.8}, {0.05, 0.9, 0.05}};
  SimilarHeadsObserver observer({attention_of("decoder.1.cross_attention", 3)}, with_seed(5));
  Synthetic weights("decoder.1.cross_attention", 3);
  for (int s = 0; s < 7; ++s) weights.add({rows, kEven, rows});
  observer.weights(weights.observed());
  const ComparedHeads found = observer.kinds().at(0);
  EXPECT_EQ(found.divergence_of(0, 2), 0);
  EXPECT_GT(found.null_of(0, 2), 0.1);
  EXPECT_LT(found.null_of(0, 2), std::numbers::ln2);
  EXPECT_NEAR(found.null_of(0, 1), found.divergence_of(0, 1), kRounding) << "an even row has no order";
  EXPECT_EQ(found.within_layers->pairs, 3);
  EXPECT_FALSE(found.between_layers);
  EXPECT_FALSE(found.layers[0].to_others);
}

TEST(SimilarHeads, HasTheIntervalsOfTheJackknife) {
  // One query a sentence, two heads: divergences 0 and log 2, so that leaving out one leaves the other.
  SimilarHeadsObserver observer({attention_of("encoder.0.self_attention", 2)}, with_seed(5));
  Synthetic weights("encoder.0.self_attention", 2);
  weights.add({{{1, 0}}, {{1, 0}}});
  weights.add({{{1, 0}}, {{0, 1}}});
  observer.weights(weights.observed());
  const Interval found = observer.kinds().at(0).within_layers->divergence;
  EXPECT_NEAR(found.mean, std::numbers::ln2 / 2, kRounding);
  EXPECT_NEAR(found.half, student_quantile(1) * std::numbers::ln2 / 2, 1e-5);
}

TEST(SimilarHeads, OneTokenLeavesNoRatio) {
  SimilarHeadsObserver observer({attention_of("encoder.0.self_attention", 2)}, with_seed(5));
  Synthetic weights("encoder.0.self_attention", 2);
  weights.add({{{1}}, {{1}}});
  observer.weights(weights.observed());
  const PairsMean found = *observer.kinds().at(0).within_layers;
  EXPECT_EQ(found.divergence.mean, 0);
  EXPECT_EQ(found.null_divergence.mean, 0);
  EXPECT_FALSE(found.ratio);
}

TEST(SimilarHeads, OneHeadHasNoPairs) {
  SimilarHeadsObserver observer({attention_of("encoder.0.self_attention", 1)}, with_seed(5));
  Synthetic weights("encoder.0.self_attention", 1);
  weights.add({kEven});
  observer.weights(weights.observed());
  const ComparedHeads found = observer.kinds().at(0);
  EXPECT_EQ(found.heads.size(), 1u);
  EXPECT_FALSE(found.within_layers);
  EXPECT_FALSE(found.between_layers);
}

TEST(SimilarHeads, MeansOverHeadsThatShareKeysAreThoseOfTheirPairs) {
  // Heads 0 and 1 share their keys, 2 and 3 do.
  SimilarHeadsObserver observer({attention_of("decoder.0.self_attention", 4, 2, Mask::causal())},
                                with_seed(7));
  Synthetic weights("decoder.0.self_attention", 4);
  const Rows a{{1, 0}, {0.9, 0.1}}, b{{1, 0}, {0.6, 0.4}}, c{{1, 0}, {0.1, 0.9}}, d{{1, 0}, {0.3, 0.7}};
  weights.add({a, b, c, d});
  observer.weights(weights.observed());
  const ComparedHeads found = observer.kinds().at(0);
  const SharedKeysMean& keys = *found.shared_keys;
  EXPECT_EQ(found.heads[2].key_head, 1);
  EXPECT_EQ(keys.sharing.pairs, 2);
  EXPECT_EQ(keys.others.pairs, 4);
  const double sharing = (found.divergence_of(0, 1) + found.divergence_of(2, 3)) / 2,
               others = (found.divergence_of(0, 2) + found.divergence_of(0, 3) + found.divergence_of(1, 2) +
                         found.divergence_of(1, 3)) /
                        4;
  EXPECT_GT(sharing, 0);
  EXPECT_NEAR(keys.sharing.divergence.mean, sharing, 1e-12);
  EXPECT_NEAR(keys.others.divergence.mean, others, 1e-12);
  EXPECT_NEAR(keys.difference.mean, others - sharing, 1e-12);
  EXPECT_NEAR(found.layers[0].shared_keys->others.divergence.mean, others, 1e-12);
  EXPECT_NEAR(found.within_layers->divergence.mean, (2 * sharing + 4 * others) / 6, 1e-12);
  // None where all heads share their keys, or none do.
  for (const int key_heads : {1, 4}) {
    SimilarHeadsObserver other({attention_of("decoder.0.self_attention", 4, key_heads)}, with_seed(7));
    other.weights(weights.observed());
    EXPECT_FALSE(other.kinds().at(0).shared_keys) << key_heads;
  }
}

/// Three layers of two heads on sentences of 1, 2, ... tokens, causal, in batches of so many sentences.
ComparedHeads in_batches(int sentences, int of_batch, uint64_t seed) {
  std::vector<ComparedAttention> attentions;
  for (int layer = 0; layer < 3; ++layer)
    attentions.push_back(
        attention_of("decoder." + std::to_string(layer) + ".self_attention", 2, 0, Mask::causal()));
  SimilarHeadsObserver observer(attentions, with_seed(seed));
  for (int first = 0; first < sentences; first += of_batch) {
    CorpusBlock block;
    block.first = first;
    observer.begin(block);
    for (int layer = 0; layer < 3; ++layer) {
      Synthetic weights(attentions[static_cast<size_t>(layer)].name, 2);
      for (int s = first; s < std::min(sentences, first + of_batch); ++s) {
        std::vector<Rows> heads(2);
        for (size_t h = 0; h < 2; ++h) {
          Random random(static_cast<uint64_t>(s), static_cast<uint64_t>(2 * layer) + h);
          heads[h].assign(static_cast<size_t>(s + 1), std::vector<double>(static_cast<size_t>(s + 1)));
          for (size_t i = 0; i < heads[h].size(); ++i) {
            double sum = 0;
            for (size_t j = 0; j <= i; ++j) sum += heads[h][i][j] = std::pow(random.uniform(), 4);
            for (size_t j = 0; j <= i; ++j) heads[h][i][j] /= sum;
          }
        }
        weights.add(heads);
      }
      observer.weights(weights.observed());
    }
  }
  return observer.kinds().at(0);
}

TEST(SimilarHeads, NeitherBatchesNorThreadsChangeABit) {
  const int threads = thread_count();
  set_thread_count(3);
  const ComparedHeads whole = in_batches(43, 43, 5);
  set_thread_count(1);
  const ComparedHeads parts = in_batches(43, 5, 5);
  set_thread_count(threads);
  EXPECT_EQ(whole.divergence, parts.divergence);
  EXPECT_EQ(whole.null_divergence, parts.null_divergence);
  EXPECT_EQ(whole.heads[5].entropy, parts.heads[5].entropy);
  EXPECT_EQ(whole.between_layers->ratio->half, parts.between_layers->ratio->half);
  EXPECT_EQ(whole.layers[1].to_others->divergence.mean, parts.layers[1].to_others->divergence.mean);
  const ComparedHeads other = in_batches(43, 43, 6);
  EXPECT_EQ(whole.divergence, other.divergence);
  EXPECT_NE(whole.null_divergence, other.null_divergence) << "another seed";
  // Heads that read at random are as alike as chance has it.
  EXPECT_NEAR(whole.between_layers->ratio->mean, 1, 0.03);
  EXPECT_LT(whole.between_layers->ratio->half, 0.05);
}

TEST(SimilarHeads, LeavesOutQueriesOfLongSentencesAlone) {
  EXPECT_EQ(compared_queries_step(30, 30, 10, 1 << 20), 1);
  EXPECT_EQ(compared_queries_step(1000, 1000, 10, 8 * 10 * 1000 * 100), 10);
  SimilarHeadsObserver observer({attention_of("encoder.0.self_attention", 2)},
                                {.seed = 1, .most_bytes = 144});
  EXPECT_EQ(observer.batch_tokens(), 3);  // 3 * 3 weights of 4 bytes, twice, of two heads
  Synthetic weights("encoder.0.self_attention", 2);
  weights.add({kEven, kEven});
  weights.add({one_hot({0, 1, 2, 3}, 4), one_hot({0, 2, 2, 1}, 4)});  // queries 0 and 2
  observer.weights(weights.observed());
  const ComparedHeads found = observer.kinds().at(0);
  EXPECT_EQ(found.queries, 5);
  EXPECT_NEAR(found.divergence_of(0, 1), 0, kRounding);
}

}  // namespace
}  // namespace mh
