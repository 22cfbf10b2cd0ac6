// Latent heads: the keys and values of all heads are projected from one short row for each token.
#include "multihead/nn/layer_weights.h"
#include "multihead/nn/ledger.h"
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

class LatentOracle final : public HeadOracle {
 public:
  D key(const Layer& layer, const D& memory, int head) const override {
    return HeadOracle::key(layer, product(memory, layer.parameters.at("w_latent")), head);
  }
  D value(const Layer& layer, const D& memory, int head) const override {
    return HeadOracle::value(layer, product(memory, layer.parameters.at("w_latent")), head);
  }
  /// The latent row is made with the keys.
  Rows counted_keys(const HeadGeometry& g, const Rows& memory, int heads,
                    const Rows& queries) const override {
    const Rows latent = product(memory, zeros(static_cast<int64_t>(memory[0].size()), g.latent_size));
    return HeadOracle::counted_keys(g, latent, heads, queries);
  }
  Rows counted_values(const HeadGeometry& g, const Rows& memory) const override {
    return HeadOracle::counted_values(g, zeros(static_cast<int64_t>(memory.size()), g.latent_size));
  }
};
const LatentOracle latent;
const Registered<HeadOracle, Scores> register_latent(Scores::kLatent, latent);

const HeadGeometry kLatentSizes = {
    .heads = 3, .d_key = 5, .d_value = 2, .scores = Scores::kLatent, .latent_size = 4};
const HeadGeometry kLatentGroups = {.heads = 4,
                                    .d_key = 2,
                                    .d_value = 3,
                                    .key_heads = 2,
                                    .scores = Scores::kLatent,
                                    .latent_size = 3,
                                    .biases = Biases::kNone};
HeadGeometry normed_latent() {
  HeadGeometry g = kLatentGroups;
  g.query_key_norm = QueryKeyNorm::kL2;
  return g;
}
HeadGeometry differential_latent() {
  HeadGeometry g = kLatentGroups;
  g.weights = HeadWeights::kDifferential;
  return g;
}

INSTANTIATE_TEST_SUITE_P(
    Latent, Geometry,
    testing::Values(Case{"latent of another size", kLatentSizes, 7}, Case{"latent groups", kLatentGroups, 5},
                    Case{
                        "latent rotary", kLatentGroups, 5, {Positions::kRotary, AttentionDirection::kCausal}},
                    Case{"latent normed", normed_latent(), 5},
                    Case{"latent differential", differential_latent(), 5}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(Latent, LedgerOf,
                         testing::Values(Case{"latent of another size", kLatentSizes, 7},
                                         Case{"latent groups", kLatentGroups, 5},
                                         Case{"latent normed", normed_latent(), 5},
                                         Case{"latent differential", differential_latent(), 5}),
                         name_of_case);

TEST(LatentHeads, WhatCannotBe) {
  expect_problem({.heads = 2, .scores = Scores::kLatent, .latent_size = -1}, 8,
                 "latent_size is -1; expected 1 ... 1024");
  expect_problem({.heads = 2, .latent_size = 3}, 8,
                 "latent_size needs latent scores; set it to 0 or scores to latent");
}

// DeepSeek-V2 has 4 d_key; so have 8 heads when nothing is said.
TEST(LatentHeads, KnowTheirUsualSize) {
  EXPECT_EQ(completed({.heads = 8, .scores = Scores::kLatent}, 64, "test").latent_size, 4 * 8);
  EXPECT_EQ(completed({.heads = 1, .d_key = 1, .scores = Scores::kLatent}, 7, "test").latent_size, 1);
}

// Keys and values of all heads together are a product through latent_size numbers.
TEST(LatentHeads, AreCanonicalHeadsOfThatRank) {
  DropoutSites sites;
  MultiHeadAttention layer("layer", {.d_model = 11, .geometry = kLatentSizes}, sites);
  Random random(5);
  layer.initialise(random);
  const LayerWeights weights = mh::weights_of(layer, 11);
  DoubleMatrix all(11, 3 * (5 + 2));
  for (int head = 0, at = 0; head < 3; ++head) {
    for (const HeadPart part : {HeadPart::kKeys, HeadPart::kValues}) {
      const DoubleMatrix one = head_matrix(weights, part, head).weight;
      for (int64_t i = 0; i < one.rows(); ++i) {
        for (int64_t c = 0; c < one.cols(); ++c) all(i, at + c) = one(i, c);
      }
      at += static_cast<int>(one.cols());
    }
  }
  EXPECT_EQ(numeric_rank(svd(all.view()).values), 4);
}

// Fewer parameters than canonical heads when the latent row is short.
TEST(LatentHeads, HaveFewerParametersThanCanonicalOnes) {
  const auto parameters = [](Scores scores) {
    const Ledger found = ledger({.heads = 8, .scores = scores, .biases = Biases::kNone}, 64, 1, 1);
    return found.part("keys").parameters + found.part("values").parameters;
  };
  EXPECT_EQ(parameters(Scores::kQueryKey), 2 * 64 * 64);
  EXPECT_EQ(parameters(Scores::kLatent), 3 * 64 * 32);
}

}  // namespace
}  // namespace mh::test
