// Doubled heads: a d_model x d_model matrix before each head's own.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

class DoubledOracle final : public HeadOracle {
 public:
  D query(const Layer& layer, const D& x, int head) const override {
    return HeadOracle::query(layer, product(x, layer.parameters.at("w_before_q")), head);
  }
  D key(const Layer& layer, const D& memory, int head) const override {
    return HeadOracle::key(layer, product(memory, layer.parameters.at("w_before_k")), head);
  }
  D value(const Layer& layer, const D& memory, int head) const override {
    return HeadOracle::value(layer, product(memory, layer.parameters.at("w_before_v")), head);
  }
  Rows counted_queries(const HeadGeometry& g, const Rows& x, int softmaxes) const override {
    return HeadOracle::counted_queries(g, before(x), softmaxes);
  }
  Rows counted_keys(const HeadGeometry& g, const Rows& memory, int heads,
                    const Rows& queries) const override {
    return HeadOracle::counted_keys(g, before(memory), heads, queries);
  }
  Rows counted_values(const HeadGeometry& g, const Rows& memory) const override {
    return HeadOracle::counted_values(g, before(memory));
  }

 private:
  static Rows before(const Rows& x) {
    const auto d = static_cast<int64_t>(x[0].size());
    return product(x, zeros(d, d));
  }
};
const DoubledOracle doubled;
const Registered<HeadOracle, Scores> register_doubled(Scores::kDoubled, doubled);

const HeadGeometry kDoubledGroups = {.heads = 2, .key_heads = 1, .scores = Scores::kDoubled, .scale = 0.3f};

INSTANTIATE_TEST_SUITE_P(Doubled, Geometry, testing::Values(Case{"doubled groups", kDoubledGroups, 4}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Doubled, LedgerOf, testing::Values(Case{"doubled groups", kDoubledGroups, 4}),
                         name_of_case);

TEST(DoubledHeads, WhatCannotBe) {
  expect_problem(
      {.heads = 2, .scores = Scores::kDoubled, .initialisation = HeadInitialisation::kCopiedKeys}, 8,
      "initialisation copied_keys needs queries and keys of the same shape; set scores to query_key, "
      "key_heads to 0");
}

}  // namespace
}  // namespace mh::test
