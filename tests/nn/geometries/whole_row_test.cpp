// Heads that read the whole row: canonical ones, groups that share keys, and tied ones.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

using enum Positions;
using enum AttentionDirection;

const HeadOracle canonical;
const Registered<HeadOracle, Scores> register_canonical(Scores::kQueryKey, canonical);

/// W^K is W^Q.
class TiedOracle final : public HeadOracle {
 public:
  D key(const Layer& layer, const D& memory, int head) const override { return query(layer, memory, head); }
  Rows counted_keys(const HeadGeometry& g, const Rows& memory, int heads,
                    const Rows& queries) const override {
    return queries.empty() ? HeadOracle::counted_keys(g, memory, heads, queries) : queries;
  }
};
const TiedOracle tied;
const Registered<HeadOracle, Scores> register_tied(Scores::kTied, tied);

const HeadGeometry kGroups = {.heads = 4, .d_key = 6, .d_value = 3, .key_heads = 2};
const HeadGeometry kSmallGroups = {.heads = 4, .d_key = 2, .d_value = 3, .key_heads = 2};
const HeadGeometry kCapped = {.heads = 4, .d_key = 6, .d_value = 3, .key_heads = 2, .soft_cap = 0.75f};
const HeadGeometry kThree = {.heads = 3, .d_key = 2};
const HeadGeometry kSizes = {.heads = 3, .d_key = 5, .d_value = 2};
const Order kBothProducts = {
    kDisentangled, kBidirectional, {.shared_projections = false, .span = 4, .farthest = 11, .normed = true}};
const Order kSharedProducts = {
    kDisentangled, kBidirectional, {.shared_projections = true, .span = 7, .farthest = 0, .normed = false}};
const Order kOfQueries = {
    kDisentangled,
    kBidirectional,
    {.position_to_content = false, .shared_projections = false, .span = 3, .farthest = 0}};
const Order kOfKeys = {kDisentangled,
                       kBidirectional,
                       {.content_to_position = false, .shared_projections = true, .span = 6, .farthest = 9}};
const HeadGeometry kTwoGroups = {.heads = 6, .d_key = 3, .d_value = 2, .key_heads = 3, .value_heads = 2};

INSTANTIATE_TEST_SUITE_P(
    WholeRow, Geometry,
    testing::Values(
        Case{"sizes that differ", kSizes, 7}, Case{"rows that come out narrower", kSizes, 7, {}, 3},
        Case{"biases of queries, keys and values",
             {.heads = 2, .key_heads = 1, .biases = Biases::kQueriesKeysValues},
             6},
        Case{"rows that come out wider", {.heads = 2, .biases = Biases::kNone}, 4, {}, 11},
        Case{"groups of keys and of values", kTwoGroups, 5}, Case{"rotary", kGroups, 5, {kRotary, kCausal}},
        Case{"rotary tied", {.heads = 2, .d_key = 4, .scores = Scores::kTied}, 5, {kRotary, kBidirectional}},
        Case{"alibi", kThree, 5, {kAlibi, kCausal}},
        Case{"alibi both ways", kGroups, 5, {kAlibi, kBidirectional}}, Case{"t5", kThree, 5, {kT5, kCausal}},
        Case{"t5 both ways", kGroups, 5, {kT5, kBidirectional}}, Case{"shaw", kThree, 5, {kShaw, kCausal}},
        Case{"shaw both ways", kGroups, 5, {kShaw, kBidirectional}}, Case{"soft cap", kCapped, 5},
        Case{"soft cap rotary", kCapped, 5, {kRotary, kCausal}},
        Case{"soft cap alibi", kCapped, 5, {kAlibi, kBidirectional}},
        Case{"soft cap t5", kCapped, 5, {kT5, kCausal}},
        Case{"soft cap shaw", kCapped, 5, {kShaw, kBidirectional}},
        Case{"disentangled", kThree, 5, kBothProducts},
        Case{"disentangled shared", kSizes, 4, kSharedProducts},
        Case{"disentangled queries", {.heads = 2, .d_key = 3, .scale = 0.4f}, 5, kOfQueries},
        Case{"disentangled keys", kThree, 5, kOfKeys}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(
    WholeRow, LedgerOf,
    testing::Values(
        Case{"sizes that differ", kSizes, 7},
        Case{"biases of queries, keys and values",
             {.heads = 2, .key_heads = 1, .biases = Biases::kQueriesKeysValues},
             6},
        Case{"groups of keys and of values", kTwoGroups, 5},
        Case{"rotary groups", kSmallGroups, 5, {kRotary}}, Case{"alibi groups", kSmallGroups, 5, {kAlibi}},
        Case{"shaw groups", kSmallGroups, 5, {kShaw}}, Case{"soft cap", kCapped, 5},
        Case{"soft cap shaw", kCapped, 5, {kShaw}}, Case{"disentangled", kThree, 5, kBothProducts},
        Case{"disentangled shared", kSizes, 4, kSharedProducts},
        Case{"disentangled keys", kThree, 5, kOfKeys},
        Case{"disentangled without biases", {.heads = 3, .biases = Biases::kNone}, 6, kSharedProducts}),
    name_of_case);

TEST(WholeRowHeads, WhatCannotBe) {
  expect_problem({.heads = 4, .key_heads = 2, .scores = Scores::kTied}, 8,
                 "tied scores take the keys of every head; set key_heads to 0");
  expect_problem(
      {.heads = 4, .key_heads = 2, .initialisation = HeadInitialisation::kCopiedKeys}, 8,
      "initialisation copied_keys needs queries and keys of the same shape; set scores to query_key, "
      "key_heads to 0");
  expect_problem({.heads = 4, .soft_cap = 0.0f}, 8,
                 "soft_cap is 0; expected a positive number, for example 50, or leave it unset");
}

TEST(WholeRowHeads, CopiedKeysAreTheQueries) {
  DropoutStreams streams;
  MultiHeadAttention layer("layer", {.d_model = 8, .geometry = geometry_preset("aggcn", 2, 8)}, streams);
  Random random(3);
  layer.initialise(random);
  const Parameters p = parameters_of(layer);
  EXPECT_EQ(distance(p.at("w_q"), p.at("w_k")), 0);
  EXPECT_GT(distance(p.at("w_q"), p.at("w_v")), 0.01);
}

}  // namespace
}  // namespace mh::test
