#include "multihead/heads/measures/packed_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/heads/measures/synthetic.h"

namespace mh {
namespace {

using test::Synthetic;

std::vector<float> packed_row(const float* from, int64_t begin, int64_t count) {
  return {from + begin, from + begin + count};
}

std::vector<float> in_rising_order(std::vector<float> row) {
  std::sort(row.begin(), row.end());
  return row;
}

/// Different weights in every row, 0 where the mask leaves nothing.
std::vector<std::vector<double>> masked_rows(const Mask& mask, int tokens, double start) {
  std::vector<std::vector<double>> rows;
  for (int i = 0; i < tokens; ++i) {
    rows.emplace_back(static_cast<size_t>(tokens), 0.0);
    const Mask::Range seen = mask.visible(i, tokens, tokens);
    for (int64_t j = seen.begin; j < seen.end; ++j) rows.back()[static_cast<size_t>(j)] = start += 0.01;
  }
  return rows;
}

TEST(PackedWeights, PermuteARowWithinWhatItsQueryMaySee) {
  constexpr int kTokens = 13;
  const Mask causal = Mask::causal(), window = Mask::window(3, 0);
  PackedWeights packed({{.name = "decoder.0.self_attention",
                         .place = {AttentionKind::kDecoderSelf, 0},
                         .heads = 2,
                         .key_heads = 2,
                         .mask = causal},
                        {.name = "decoder.1.self_attention",
                         .place = {AttentionKind::kDecoderSelf, 1},
                         .heads = 1,
                         .key_heads = 1,
                         .mask = window}},
                       17, 1 << 20);
  Synthetic first("decoder.0.self_attention", 2), second("decoder.1.self_attention", 1);
  first.add({masked_rows(causal, 2, 0.1), masked_rows(causal, 2, 0.3)});
  first.add({masked_rows(causal, kTokens, 0.1), masked_rows(causal, kTokens, 0.3)});
  second.add({masked_rows(window, 2, 0.2)});
  second.add({masked_rows(window, kTokens, 0.2)});
  EXPECT_FALSE(packed.add(first.observed(), 31));
  EXPECT_TRUE(packed.add(second.observed(), 31));
  ASSERT_EQ(packed.sentences().size(), 2u);
  const PackedWeights::Sentence& sentence = packed.sentences()[1];
  EXPECT_EQ(sentence.number, 32);
  EXPECT_EQ(sentence.queries, kTokens);
  EXPECT_EQ(packed.heads(), 3);

  int moved = 0;
  for (int h = 0; h < 3; ++h) {
    const Mask& mask = h < 2 ? causal : window;
    const std::vector<std::vector<double>> expected = masked_rows(mask, kTokens,
                                                                  h == 0   ? 0.1
                                                                  : h == 1 ? 0.3
                                                                           : 0.2);
    int64_t cell = 0;
    for (int64_t i = 0; i < kTokens; ++i, cell += i) {  // keys 0 to i
      const std::vector<float> real = packed_row(packed.weights(h, sentence), cell, i + 1),
                               null = packed_row(packed.permuted(h, sentence), cell, i + 1);
      for (size_t j = 0; j < real.size(); ++j) {
        EXPECT_EQ(real[j], static_cast<float>(expected[static_cast<size_t>(i)][j]));
        if (!mask.allows(0, i, static_cast<int64_t>(j), kTokens, kTokens)) {
          EXPECT_EQ(null[j], 0) << "head " << h << " query " << i << " key " << j;
        }
      }
      EXPECT_EQ(in_rising_order(real), in_rising_order(null)) << "the same weights, so the same entropy";
      moved += real != null;
    }
    for (; cell < sentence.cells; ++cell) {
      EXPECT_EQ(packed.weights(h, sentence)[cell], 0);
      EXPECT_EQ(packed.permuted(h, sentence)[cell], 0);
    }
  }
  EXPECT_GT(moved, 20);
}

TEST(PackedWeights, HeadsQueriesAndSentencesArePermutedIndependently) {
  const AttentionPlace place{.kind = AttentionKind::kDecoderSelf, .layer = 3};
  const uint64_t seed = permutation_seed(1, 5, place, 7);
  EXPECT_EQ(seed, permutation_seed(1, 5, place, 7));
  EXPECT_NE(seed, permutation_seed(2, 5, place, 7));
  EXPECT_NE(seed, permutation_seed(1, 6, place, 7));
  EXPECT_NE(seed, permutation_seed(1, 5, place, 8));
  EXPECT_NE(seed, permutation_seed(1, 5, {.kind = AttentionKind::kDecoderSelf, .layer = 4}, 7));
  EXPECT_NE(seed, permutation_seed(1, 5, {.kind = AttentionKind::kCross, .layer = 3}, 7));
}

}  // namespace
}  // namespace mh
