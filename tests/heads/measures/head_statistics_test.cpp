#include "multihead/heads/measures/head_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/head_name.h"
#include "tests/heads/measures/synthetic.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using test::one_hot;
using test::Synthetic;
constexpr double kTiny = 1e-6;  // weights are float32

TEST(HeadStatistics, OneHotAndEvenHeadsHaveTheFiguresOfTheirFormulas) {
  // Head 0 reads the previous token (the first reads itself), head 1 everything evenly; 3 queries, 3 keys.
  const double third = 1.0 / 3;
  Synthetic weights("encoder.1.self_attention", 2);
  weights.add({one_hot({0, 0, 1}, 3), {{third, third, third}, {third, third, third}, {third, third, third}}});
  HeadStatistics statistics;
  statistics.weights(weights.observed());
  const auto heads = statistics.heads();
  ASSERT_EQ(heads.size(), 2u);

  EXPECT_EQ(heads[0].name(), "encoder.1.self_attention.0");
  EXPECT_EQ(heads[0].queries, 3);
  EXPECT_NEAR(heads[0].entropy, 0, kTiny);
  EXPECT_NEAR(heads[0].distance, 2.0 / 3, kTiny);
  EXPECT_NEAR(heads[0].at_offset[2], 2.0 / 3, kTiny);  // -1
  EXPECT_NEAR(heads[0].at_offset[3], 1.0 / 3, kTiny);  // 0
  EXPECT_NEAR(heads[0].most_at_offset[2], 1, kTiny);   // both queries that have a previous token
  EXPECT_NEAR(heads[0].on_end, 0, kTiny);

  EXPECT_NEAR(heads[1].entropy, std::log(3.0), kTiny);
  EXPECT_NEAR(heads[1].entropy_share, 1, kTiny);
  EXPECT_NEAR(heads[1].distance, (3 + 2 + 3) * third / 3, kTiny);
  EXPECT_NEAR(heads[1].at_offset[1], third / 3, kTiny);  // -2: one query of three
  EXPECT_NEAR(heads[1].at_offset[4], 2 * third / 3, kTiny);
  EXPECT_NEAR(heads[1].on_end, third, kTiny);

  // <A, B> / (|A| |B|) = 1 / (sqrt(3) * 1), and JS of a one-hot and an even row of three.
  const double js = (2.0 / 3) * -std::log(2.0 / 3) + 2 * (1.0 / 6) * -std::log(1.0 / 6) - 0.5 * std::log(3.0);
  ASSERT_TRUE(heads[0].cosine);
  EXPECT_NEAR(*heads[0].cosine, 1 / std::sqrt(3.0), kTiny);
  EXPECT_NEAR(*heads[0].divergence, js, kTiny);
}

TEST(HeadStatistics, TheDecoderSeesNothingAheadAndHasTheStartTokenForAnEnd) {
  Synthetic weights("decoder.0.self_attention", 1);
  weights.add({{{1, 0, 0}, {0.5, 0.5, 0}, {0.25, 0.25, 0.5}}});
  HeadStatistics statistics;
  statistics.weights(weights.observed());
  const HeadFigures head = statistics.heads().at(0);
  // Shares of log 2 and log 3; the first query sees one key and is left out.
  const double last = 0.5 * std::log(2.0) + 0.5 * std::log(4.0);
  EXPECT_NEAR(head.entropy_share, (1 + last / std::log(3.0)) / 2, kTiny);
  EXPECT_NEAR(head.on_end, (1 + 0.5 + 0.25) / 3, kTiny);
  EXPECT_EQ(head.most_at_offset[4], 0);  // +1
  EXPECT_FALSE(head.cosine);
}

TEST(HeadStatistics, CrossAttentionCountsPositionsAsTheyAre) {
  Synthetic weights("decoder.2.cross_attention", 1);
  weights.add({one_hot({1, 4}, 5)});
  HeadStatistics statistics;
  statistics.weights(weights.observed());
  const HeadFigures head = statistics.heads().at(0);
  EXPECT_NEAR(head.distance, (1 + 3) / 2.0, kTiny);
  EXPECT_NEAR(head.at_offset[4], 0.5, kTiny);  // +1
  EXPECT_NEAR(head.at_offset[6], 0.5, kTiny);  // +3
  EXPECT_NEAR(head.on_end, 0.5, kTiny);
}

TEST(HeadStatistics, EqualHeadsHaveCosineOneAndDivergenceZero) {
  const std::vector<std::vector<double>> a{{0.7, 0.3}, {0.2, 0.8}}, b{{0, 1}, {1, 0}}, c{{1, 0}, {0, 1}};
  Synthetic weights("encoder.0.self_attention", 4);
  weights.add({a, a, b, c});
  HeadStatistics statistics;
  statistics.weights(weights.observed());
  const HeadSimilarity like = statistics.similarities().at(0);
  EXPECT_NEAR(like.cosine[1], 1, kTiny);
  EXPECT_NEAR(like.divergence[1], 0, kTiny);
  EXPECT_NEAR(like.cosine[2 * 4 + 3], 0, kTiny);
  EXPECT_NEAR(like.divergence[3 * 4 + 2], std::numbers::ln2, kTiny);
  EXPECT_EQ(like.cosine[3 * 4 + 2], like.cosine[2 * 4 + 3]);
}

TEST(HeadStatistics, OrdersByKindThenLayerThenHead) {
  HeadStatistics statistics;
  for (const char* name : {"decoder.0.cross_attention", "encoder.10.self_attention",
                           "decoder.1.self_attention", "encoder.2.self_attention"}) {
    Synthetic weights(name, 1);
    weights.add({{{1}}});
    statistics.weights(weights.observed());
  }
  std::vector<std::string> names;
  for (const auto& head : statistics.heads()) names.push_back(head.name());
  EXPECT_THAT(names, testing::ElementsAre("encoder.2.self_attention.0", "encoder.10.self_attention.0",
                                          "decoder.1.self_attention.0", "decoder.0.cross_attention.0"));
}

class OnAModel : public testing::Test {
 protected:
  OnAModel() : model(small_shape().config()) { model.initialise(3); }
  HeadStatistics statistics(int64_t max_tokens) {
    HeadStatistics found;
    CorpusObserver* observers[] = {&found};
    observe_corpus(model, sources, targets, observers, {.max_batch_tokens = max_tokens});
    return found;
  }
  EncoderDecoder model;
  // 23 sentences of 1 to 11 tokens and the end token.
  static std::vector<std::vector<int32_t>> sentences(uint64_t seed) {
    Random random(seed);
    std::vector<int32_t> lengths(23);
    for (int32_t& length : lengths) length = 2 + static_cast<int32_t>(random.below(11));
    return random_sources(seed, lengths);
  }
  static std::vector<std::vector<int32_t>> without_end(std::vector<std::vector<int32_t>> all) {
    for (auto& sentence : all) sentence.pop_back();
    return all;
  }
  std::vector<std::vector<int32_t>> sources = sentences(5);
  std::vector<std::vector<int32_t>> targets = without_end(sentences(7));
};

TEST_F(OnAModel, NeitherBatchesNorThreadsChangeABit) {
  const int threads = thread_count();
  set_thread_count(1);
  const auto whole = statistics(100000).heads();
  set_thread_count(3);
  const auto again = statistics(100000).heads();
  set_thread_count(threads);
  const auto alone = statistics(1).heads();
  ASSERT_EQ(whole.size(), 2u * 2 + 3 * 5 + 3 * 5);
  ASSERT_EQ(alone.size(), whole.size());
  for (size_t h = 0; h < whole.size(); ++h) {
    EXPECT_EQ(whole[h].entropy, again[h].entropy);
    EXPECT_EQ(whole[h].cosine, again[h].cosine);
    EXPECT_EQ(whole[h].divergence, again[h].divergence);
    EXPECT_EQ(whole[h].queries, alone[h].queries);
    EXPECT_NEAR(whole[h].entropy, alone[h].entropy, 1e-5);
    EXPECT_NEAR(*whole[h].divergence, *alone[h].divergence, 1e-5);
  }
}

// Rows sum to one, and what lies ahead in the decoder weighs exactly nothing.
class RowSums : public CorpusObserver {
 public:
  bool wants_weights(const Model::Attention&) const override { return true; }
  void weights(const BatchWeights& batch) override {
    const bool causal = batch.attention.place.kind == AttentionKind::kDecoderSelf;
    if (batch.attention.name == "encoder.0.self_attention") sentences_ += batch.sentences.size();
    for (int s = 0; s < batch.sequences(); ++s) {
      for (int h = 0; h < batch.heads(); ++h) {
        const ConstMatrixView a = batch.matrix(s, h);
        for (int64_t i = 0; i < a.rows; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < a.cols; ++j) {
            sum += static_cast<double>(a(i, j));
            EXPECT_TRUE(!causal || j <= i || a(i, j) == 0) << i << " " << j;
          }
          EXPECT_NEAR(sum, 1, 1e-5);
          ++rows_;
        }
      }
    }
  }
  size_t sentences_ = 0, rows_ = 0;
};

TEST_F(OnAModel, EveryRowSumsToOne) {
  RowSums sums;
  CorpusObserver* observers[] = {&sums};
  observe_corpus(model, sources, targets, observers, {.max_batch_tokens = 61});
  EXPECT_EQ(sums.sentences_, 23u);
  size_t source_tokens = 0, target_tokens = 0;
  for (const auto& s : sources) source_tokens += s.size();
  for (const auto& t : targets) target_tokens += t.size() + 1;
  EXPECT_EQ(sums.rows_, source_tokens * 2 * 2 + target_tokens * (3 * 5 + 3 * 5));
}

TEST_F(OnAModel, KeepingWeightsChangesNoBitOfTheOutput) {
  const std::vector<int32_t>& source = sources[0];
  const Ragged ragged = Ragged::from_lengths(std::vector{static_cast<int32_t>(source.size())});
  const Sequences read{.ids = source, .ragged = &ragged, .sentences = {}};
  Tape plain_tape, watched_tape;
  Context plain{.tape = plain_tape};
  SiteValues values;
  values.keep("*.weights.*");
  Context watched{.tape = watched_tape, .sites = &values};
  const Var a = model.encode(plain, read), b = model.encode(watched, read);
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) ASSERT_EQ(a.value()(i, j), b.value()(i, j));
  }
  EXPECT_EQ(values.value("encoder.1.self_attention.weights.1").rows(), static_cast<int64_t>(source.size()));
}

TEST_F(OnAModel, MutingAHeadLeavesItsLayerAndChangesTheNext) {
  const auto before = statistics(100000).heads();
  SiteValues mute;
  mute.mute("encoder.0.self_attention.1");
  HeadStatistics muted;
  CorpusObserver* observers[] = {&muted};
  observe_corpus(model, sources, targets, observers, {.sites = &mute});
  const auto after = muted.heads();
  for (size_t h = 0; h < 2; ++h)
    EXPECT_NEAR(before[h].entropy, after[h].entropy, 1e-6) << "weights come before the gate";
  EXPECT_GT(std::abs(before[2].entropy - after[2].entropy), 1e-6);
  mute.mute("encoder.7.self_attention.2");
  EXPECT_THROW(observe_corpus(model, sources, targets, observers, {.sites = &mute}), UsageError);
}

TEST_F(OnAModel, NamesTheSentenceThatCannotBeRead) {
  const auto message = [&] {
    try {
      observe_corpus(model, sources, targets, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  targets[4][0] = 37;
  EXPECT_EQ(message(), "target 5: expected token ids from 0 to 36, got 37; is it the right model?");
  sources[2].assign(42, 3);
  EXPECT_EQ(message(), "source 3: expected at most 41 tokens, as many as the model reads, got 42; cut it");
  sources[1].clear();
  EXPECT_EQ(message(), "source 2: no tokens, not even the end token");
  targets.pop_back();
  EXPECT_THAT(message(), testing::HasSubstr("23 sources but 22 targets"));
}

}  // namespace
}  // namespace mh
