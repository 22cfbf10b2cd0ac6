// Collaborative heads: all heads share W^Q and W^K, and each has a mixing vector.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

class CollaborativeOracle final : public HeadOracle {
 public:
  D query(const Layer& layer, const D& x, int head) const override {
    D q = projected(layer, x, "q", 0, layer.geometry.shared_size);
    for (int64_t i = 0; i < q.rows(); ++i) {
      for (int64_t c = 0; c < q.cols(); ++c) q(i, c) *= layer.parameters.at("mixing")(head, c);
    }
    return q;
  }
  D key(const Layer& layer, const D& memory, int) const override {
    return projected(layer, memory, "k", 0, layer.geometry.shared_size);
  }

  int score_size(const HeadGeometry& g, int) const override { return g.shared_size; }
  int key_heads(const HeadGeometry&, int) const override { return 1; }
  Rows counted_queries(const HeadGeometry& g, const Rows& x, int softmaxes) const override {
    const Rows shared = counted_projection(g, x, g.shared_size);
    Rows mixed = zeros(static_cast<int64_t>(x.size()), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      for (int h = 0; h < softmaxes; ++h) {
        for (const Counted n : shared[i]) mixed[i].push_back(n * Counted{2});
      }
    }
    return mixed;
  }
  Rows counted_keys(const HeadGeometry& g, const Rows& memory, int, const Rows&) const override {
    return counted_projection(g, memory, g.shared_size);
  }
};
const CollaborativeOracle collaborative;
const Registered<HeadOracle, Scores> register_collaborative(Scores::kCollaborative, collaborative);

const HeadGeometry kFive = {.heads = 2, .d_key = 2, .scores = Scores::kCollaborative, .shared_size = 5};
const HeadGeometry kSix = {.heads = 2, .d_key = 2, .scores = Scores::kCollaborative, .shared_size = 6};

INSTANTIATE_TEST_SUITE_P(
    Collaborative, Geometry,
    testing::Values(
        Case{"collaborative of another size", kFive, 4},
        Case{"rotary collaborative", kSix, 5, {Positions::kRotary, AttentionDirection::kCausal}},
        Case{"shaw collaborative", kSix, 5, {Positions::kShaw, AttentionDirection::kBidirectional}}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(Collaborative, LedgerOf,
                         testing::Values(Case{"collaborative of another size", kFive, 4},
                                         Case{"shaw collaborative", kFive, 4, {Positions::kShaw}}),
                         name_of_case);

TEST(CollaborativeHeads, WhatCannotBe) {
  expect_problem({.heads = 4, .key_heads = 2, .scores = Scores::kCollaborative}, 8,
                 "collaborative scores already share their keys; set key_heads and value_heads to 0");
  expect_problem({.heads = 2, .scores = Scores::kCollaborative, .shared_size = 2000}, 8,
                 "shared_size is 2000; expected 1 ... 1024");
}

}  // namespace
}  // namespace mh::test
