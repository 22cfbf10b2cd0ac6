// Merged heads: one matrix W_i for W_i^Q W_i^K^T, and the rows themselves as keys.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

class MergedOracle final : public HeadOracle {
 public:
  D query(const Layer& layer, const D& x, int head) const override {
    const int64_t begin = int64_t{head} * layer.d_model;
    D q = product(x, columns_of(layer.parameters.at("w_qk"), begin, begin + layer.d_model));
    add_bias_of(layer.parameters, "c_qk", begin, q);
    return q;
  }
  D key(const Layer&, const D& memory, int) const override { return memory; }

  int score_size(const HeadGeometry&, int d_model) const override { return d_model; }
  int key_heads(const HeadGeometry&, int) const override { return 1; }
  Rows counted_queries(const HeadGeometry& g, const Rows& x, int softmaxes) const override {
    return counted_projection(g, x, softmaxes * static_cast<int64_t>(x[0].size()));
  }
  Rows counted_keys(const HeadGeometry&, const Rows& memory, int, const Rows&) const override {
    return memory;
  }
};
const MergedOracle merged;
const Registered<HeadOracle, Scores> register_merged(Scores::kMerged, merged);

INSTANTIATE_TEST_SUITE_P(
    Merged, Geometry,
    testing::Values(Case{"merged, no biases",
                         {.heads = 2, .d_key = 2, .scores = Scores::kMerged, .biases = Biases::kNone},
                         5},
                    Case{"t5 merged",
                         {.heads = 2, .d_key = 2, .scores = Scores::kMerged},
                         5,
                         {Positions::kT5, AttentionDirection::kCausal}}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(
    Merged, LedgerOf,
    testing::Values(Case{
        "merged of another size", {.heads = 3, .d_key = 2, .d_value = 4, .scores = Scores::kMerged}, 5}),
    name_of_case);

TEST(MergedHeads, WhatCannotBe) {
  expect_problem({.heads = 4, .key_heads = 2, .scores = Scores::kMerged}, 8,
                 "merged scores already share their keys; set key_heads and value_heads to 0");
  expect_problem({.heads = 2, .d_key = 8, .scores = Scores::kMerged}, 2000,
                 "merged scores make heads of d_model 2000; the largest head is 1024");
}

}  // namespace
}  // namespace mh::test
