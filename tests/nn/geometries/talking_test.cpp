// Talking heads: scores of all heads are mixed, and weights again.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

Maps mixed(const Maps& maps, const D& mixing) {
  Maps out;
  for (size_t g = 0; g < maps.size(); ++g) {
    D& sum = out.emplace_back(maps[0].rows(), maps[0].cols());
    for (size_t h = 0; h < maps.size(); ++h) {
      for (int64_t n = 0; n < sum.size(); ++n)
        sum.data()[n] += mixing(static_cast<int64_t>(h), static_cast<int64_t>(g)) * maps[h].data()[n];
    }
  }
  return out;
}

/// Matrices of all heads mixed.
std::vector<Rows> counted_mixing(const std::vector<Rows>& maps) {
  std::vector<Rows> out;
  for (size_t g = 0; g < maps.size(); ++g) {
    Rows& to = out.emplace_back(
        zeros(static_cast<int64_t>(maps[0].size()), static_cast<int64_t>(maps[0][0].size())));
    for (const Rows& from : maps) {
      for (size_t i = 0; i < from.size(); ++i) {
        for (size_t j = 0; j < from[i].size(); ++j) multiply_add(Counted{0.1f}, from[i][j], to[i][j]);
      }
    }
  }
  return out;
}

class TalkingOracle final : public WeightOracle {
 public:
  Maps weights(const Parameters& p, Maps scores, const Mask& mask, int64_t first) const override {
    return mixed(softmax_of(mixed(scores, p.at("mixing_of_scores")), mask, first), p.at("mixing_of_weights"));
  }
  bool composed() const override { return true; }
  std::vector<Rows> counted_scores(std::vector<Rows> scores) const override { return counted_mixing(scores); }
  std::vector<Rows> counted_weights(std::vector<Rows> weights) const override {
    return counted_mixing(weights);
  }
};
const TalkingOracle talking;
const Registered<WeightOracle, HeadWeights> register_talking(HeadWeights::kTalking, talking);

using enum Positions;
const HeadGeometry kTalkingThree = {.heads = 3, .d_key = 2, .weights = HeadWeights::kTalking};

INSTANTIATE_TEST_SUITE_P(
    Talking, Geometry,
    testing::Values(
        Case{"talking groups", {.heads = 4, .d_key = 2, .key_heads = 2, .weights = HeadWeights::kTalking}, 5},
        Case{"talking alibi", kTalkingThree, 5, {kAlibi, AttentionDirection::kBidirectional}},
        Case{"talking t5", kTalkingThree, 5, {kT5, AttentionDirection::kCausal}},
        Case{"talking shaw", kTalkingThree, 5, {kShaw, AttentionDirection::kCausal}},
        Case{"talking merged", {.heads = 2, .scores = Scores::kMerged, .weights = HeadWeights::kTalking}, 6}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(
    Talking, LedgerOf,
    testing::Values(Case{
        "talking groups",
        {.heads = 4, .d_key = 2, .d_value = 3, .key_heads = 2, .weights = HeadWeights::kTalking},
        5}),
    name_of_case);

TEST(TalkingHeads, WhatCannotBe) {
  expect_problem(
      {.heads = 2, .weights = HeadWeights::kTalking, .soft_cap = 50.0f}, 8,
      "talking weights mix scores, of which soft_cap could cap those before or after; leave it unset or "
      "set weights to softmax");
}

}  // namespace
}  // namespace mh::test
