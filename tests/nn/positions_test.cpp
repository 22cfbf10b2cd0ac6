// Positional encoding: slopes and buckets of the formulas, and which combinations are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/position_table.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

using testing::ElementsAre;

TEST(Positions, SlopesOfAlibiAreThePapers) {
  EXPECT_THAT(alibi_slopes(8),
              ElementsAre(0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.015625f, 0.0078125f, 0.00390625f));
  EXPECT_THAT(alibi_slopes(2), ElementsAre(0.0625f, 0.00390625f));
}

/// The first distance of each bucket, as T5Attention._relative_position_bucket of transformers 4 has them.
TEST(Positions, BucketsAreThoseOfT5) {
  const auto first_distances = [](AttentionDirection direction, int sign) {
    std::vector<int> firsts{1};
    for (int d = 2; d <= 200; ++d) {
      if (t5_bucket(sign * d, direction) != t5_bucket(sign * (d - 1), direction)) firsts.push_back(d);
    }
    return firsts;
  };
  const auto both = ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91);
  EXPECT_THAT(first_distances(AttentionDirection::kBidirectional, 1), both);
  EXPECT_THAT(first_distances(AttentionDirection::kBidirectional, -1), both);
  EXPECT_THAT(first_distances(AttentionDirection::kCausal, -1),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31, 35, 40,
                          46, 52, 59, 67, 77, 87, 99, 113));
  EXPECT_EQ(t5_bucket(0, AttentionDirection::kBidirectional), 0);
  EXPECT_EQ(t5_bucket(-1, AttentionDirection::kBidirectional), 1);
  EXPECT_EQ(t5_bucket(1, AttentionDirection::kBidirectional), 17);
  EXPECT_EQ(t5_bucket(200, AttentionDirection::kBidirectional), 31);
  EXPECT_EQ(t5_bucket(-200, AttentionDirection::kCausal), 31);
  EXPECT_EQ(t5_bucket(5, AttentionDirection::kCausal), 0);
}

/// Other numbers of buckets, from the same function of transformers 5.24.
TEST(Positions, OtherBucketsAreThoseOfT5) {
  const auto of = [](AttentionDirection direction, const T5Buckets& buckets, std::vector<int> distances) {
    for (int& distance : distances) distance = t5_bucket(distance, direction, buckets);
    return distances;
  };
  using enum AttentionDirection;
  EXPECT_THAT(
      of(kBidirectional, {.count = 11, .farthest = 13}, {-40, -13, -9, -5, -3, -2, -1, 0, 1, 2, 3, 5, 9, 13}),
      ElementsAre(4, 4, 4, 3, 2, 2, 1, 0, 6, 7, 7, 8, 9, 9));
  EXPECT_THAT(of(kCausal, {.count = 11, .farthest = 13}, {-40, -13, -11, -9, -7, -6, -5, -4, -1, 0, 1, 40}),
              ElementsAre(10, 10, 9, 8, 7, 6, 5, 4, 1, 0, 0, 0));
  // On the border of two buckets.
  EXPECT_EQ(t5_bucket(-12, kCausal, {.count = 19, .farthest = 16}), 14);
  EXPECT_EQ(t5_bucket(-24, kCausal, {.count = 36, .farthest = 32}), 27);
}

/// make_log_bucket_position of transformers 5.24 in torch 2.15.
TEST(Positions, DisentangledColumnsAreThoseOfDeberta) {
  const auto of = [](const DisentangledOptions& options, std::vector<int> distances) {
    for (int& distance : distances) distance = disentangled_column(distance, options);
    return distances;
  };
  EXPECT_THAT(
      of({.span = 256, .farthest = 512},
         {-511, -400, -300, -200, -129, -128, -127, -1, 0, 1, 127, 128, 129, 130, 135, 200, 300, 511}),
      ElementsAre(1, 23, 49, 87, 127, 128, 129, 255, 256, 257, 383, 384, 385, 386, 389, 425, 463, 511));
  EXPECT_THAT(of({.span = 8, .farthest = 131},
                 {-130, -60, -20, -7, -5, -4, -3, 0, 3, 4, 5, 6, 7, 11, 19, 30, 60, 100, 129, 130}),
              ElementsAre(1, 1, 2, 3, 3, 4, 5, 8, 11, 12, 13, 13, 13, 13, 14, 14, 15, 15, 15, 15));
  EXPECT_THAT(of({.span = 11, .farthest = 64}, {-63, -9, -6, -5, 0, 5, 6, 7, 8, 9, 13, 20, 40, 63}),
              ElementsAre(2, 5, 5, 6, 11, 16, 17, 17, 17, 17, 18, 19, 20, 20));
  EXPECT_THAT(of({.span = 7, .farthest = 0}, {-9, -8, -7, -6, 0, 5, 6, 7, 9}),
              ElementsAre(0, 0, 0, 1, 7, 12, 13, 13, 13));
}

/// Without training, projected vectors of distances are kept, but not beyond a change of what they are made of.
TEST(Positions, KeptVectorsFollowTheirParameters) {
  DropoutStreams streams;
  MultiHeadAttention layer("layer",
                           {.d_model = 6,
                            .geometry = {.heads = 2},
                            .positions = Positions::kDisentangled,
                            .disentangled = {.span = 5, .farthest = 9}},
                           streams);
  Random random(3);
  layer.initialise(random);
  Tensor x(11, 6);
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{4, 7});
  const auto heads = [&](Tape::Mode mode) {
    Tape tape(mode);
    Context context{.tape = tape};
    const Sequences rows{.ids = {}, .ragged = &ragged, .sentences = {}};
    return copied(layer.self_heads(context, tape.constant(x.view()), rows, Mask::none()).value());
  };
  std::vector<float> before;
  for (const char* changed : {"", ".distance_vectors", ".distance_norm.gain", ".w_k", ".b_q"}) {
    layer.visit("", [&](const std::string& name, Parameter& p) {
      if (name != changed) return;
      for (int64_t i = 0; i < p.value.size(); ++i) p.value.data()[i] += 0.5f * static_cast<float>(i % 3);
      p.changed();
    });
    const Tensor kept = heads(Tape::Mode::kEvaluate), anew = heads(Tape::Mode::kRecord);
    const std::vector<float> now(kept.data(), kept.data() + kept.size());
    EXPECT_NE(now, before) << changed;
    for (int64_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(kept.data()[i], anew.data()[i], 1e-5) << changed;
    before = now;
  }
}

TEST(Positions, BucketsThatCannotBeAreNamed) {
  EXPECT_EQ(problem_of(T5Buckets{}), "");
  EXPECT_EQ(problem_of({.count = 4, .farthest = 3}), "");
  EXPECT_EQ(problem_of({.count = 3, .farthest = 9}), "the number of buckets is 3; expected 4 ... 4096");
  EXPECT_EQ(problem_of({.count = 11, .farthest = 5}),
            "the farthest distance with a bucket is 5; with 11 buckets expected 6 ... 4096");
}

TEST(Positions, ProblemsNameWhatWouldWork) {
  EXPECT_THAT(problems_of(Positions::kRotary, {.heads = 2, .scores = Scores::kMerged}, 8),
              ElementsAre("positions rotary turn queries and keys, of which merged scores have none of their "
                          "own; use alibi, t5 or shaw, or set scores to query_key"));
  EXPECT_THAT(problems_of(Positions::kRotary, {.heads = 2, .d_key = 3}, 8),
              ElementsAre("positions rotary turn pairs of numbers, but a key has 3; set d_key to an even "
                          "number, for example 4"));
  for (const auto& [name, positions] : kPositionNames) {
    EXPECT_THAT(problems_of(positions, {.heads = 2, .d_key = 4}, 8), ElementsAre()) << name;
  }
  DropoutStreams streams;
  const MultiHeadAttentionConfig impossible = {
      .d_model = 6, .geometry = {.heads = 2}, .positions = Positions::kRotary};
  EXPECT_THROW(MultiHeadAttention("layer", impossible, streams), UsageError);
}

TEST(Positions, TablesAddWhatTheyAreCalled) {
  PositionTable waves(Positions::kSinusoidal, 5, 4), learned(Positions::kLearned, 5, 4),
      none(Positions::kRotary, 5, 4);
  EXPECT_EQ(waves.rows()(waves.row_of(0), 3), 1);  // cos(0)
  EXPECT_EQ(waves.learned(), nullptr);
  ASSERT_NE(learned.learned(), nullptr);
  EXPECT_EQ(learned.rows().data, learned.learned()->value.data());
  EXPECT_EQ(none.rows()(none.row_of(4), 3), 0);
  EXPECT_EQ(none.longest(), 5);
}

}  // namespace
}  // namespace mh
