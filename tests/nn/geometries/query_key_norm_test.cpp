// Query-key normalisation: queries and keys are scaled to length 1, and scores have a learned factor.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

/// Each row at length 1, times `factor`.
inline D at_length(const D& rows, double factor) {
  D out(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double squares = 0;
    for (int64_t c = 0; c < rows.cols(); ++c) squares += rows(i, c) * rows(i, c);
    for (int64_t c = 0; c < rows.cols(); ++c) out(i, c) = factor * rows(i, c) / std::sqrt(squares);
  }
  return out;
}

class NormOracle final : public QueryKeyOracle {
 public:
  D query(const Layer& layer, D q) const override {
    return at_length(q, layer.parameters.at("score_factor")(0, 0));
  }
  D key(const Layer&, D k) const override { return at_length(k, 1); }

  bool scales_scores() const override { return false; }
  /// Each head's numbers at length 1.
  void count(Rows& rows, size_t size) const override {
    for (auto& row : rows) {
      for (size_t at = 0; at < row.size(); at += size) {
        Counted squares;
        for (size_t c = 0; c < size; ++c) squares = squares + row[at + c] * row[at + c];
        const Counted inverse = Counted{1} / root(squares);
        for (size_t c = 0; c < size; ++c) row[at + c] = row[at + c] * inverse;
      }
    }
  }
};
const NormOracle norm;
const Registered<QueryKeyOracle, QueryKeyNorm> register_norm(QueryKeyNorm::kL2, norm);

/// Each row divided by its root mean square, times its gains.
inline D at_root_mean_square(const D& rows, const D& gain) {
  D out(rows.rows(), rows.cols());
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double squares = 0;
    for (int64_t c = 0; c < rows.cols(); ++c) squares += rows(i, c) * rows(i, c);
    const double root = std::sqrt(squares / static_cast<double>(rows.cols()) + 1e-6);
    for (int64_t c = 0; c < rows.cols(); ++c) out(i, c) = gain(0, c) * rows(i, c) / root;
  }
  return out;
}

class RmsOracle final : public QueryKeyOracle {
 public:
  D query(const Layer& layer, D q) const override {
    return QueryKeyOracle::query(layer, at_root_mean_square(q, layer.parameters.at("query_norm")));
  }
  D key(const Layer& layer, D k) const override {
    return at_root_mean_square(k, layer.parameters.at("key_norm"));
  }

  void count(Rows& rows, size_t size) const override {
    for (auto& row : rows) {
      for (size_t at = 0; at < row.size(); at += size) {
        Counted squares;
        for (size_t c = 0; c < size; ++c) squares = squares + row[at + c] * row[at + c];
        const Counted inverse =
            Counted{1} / root(squares * Counted{1 / static_cast<float>(size)} + Counted{1e-6f});
        for (size_t c = 0; c < size; ++c) row[at + c] = Counted{1} * (row[at + c] * inverse);
      }
    }
  }
};
const RmsOracle rms;
const Registered<QueryKeyOracle, QueryKeyNorm> register_rms(QueryKeyNorm::kRms, rms);

const HeadGeometry kRms = {.heads = 4, .d_key = 4, .key_heads = 2, .query_key_norm = QueryKeyNorm::kRms};
const HeadGeometry kCosine = {
    .heads = 4, .d_key = 2, .key_heads = 2, .query_key_norm = QueryKeyNorm::kL2, .scale = 3.0f};
const HeadGeometry kCappedCosine = {.heads = 4,
                                    .d_key = 2,
                                    .key_heads = 2,
                                    .query_key_norm = QueryKeyNorm::kL2,
                                    .scale = 3.0f,
                                    .soft_cap = 1.25f};
const HeadGeometry kTied = {.heads = 2, .scores = Scores::kTied, .query_key_norm = QueryKeyNorm::kL2};

INSTANTIATE_TEST_SUITE_P(
    QueryKeyNorm, Geometry,
    testing::Values(
        Case{"normalised", kCosine, 5}, Case{"normalised with a soft cap", kCappedCosine, 5},
        Case{"rms with a soft cap",
             {.heads = 2, .query_key_norm = QueryKeyNorm::kRms, .soft_cap = 0.75f},
             8,
             {Positions::kRotary, AttentionDirection::kCausal}},
        Case{"normalised rotary", kCosine, 5, {Positions::kRotary, AttentionDirection::kCausal}},
        Case{"normalised shaw", kCosine, 5, {Positions::kShaw, AttentionDirection::kBidirectional}},
        Case{"normalised slices",
             {.heads = 2, .input = HeadInput::slices(), .query_key_norm = QueryKeyNorm::kL2},
             6},
        Case{"normalised tied", kTied, 6}, Case{"rms", kRms, 5},
        Case{"rms rotary", kRms, 5, {Positions::kRotary, AttentionDirection::kCausal}},
        Case{"rms slices",
             {.heads = 2, .input = HeadInput::slices(), .query_key_norm = QueryKeyNorm::kRms},
             6},
        Case{"rms of two softmaxes",
             {.heads = 2, .query_key_norm = QueryKeyNorm::kRms, .weights = HeadWeights::kDifferential},
             8}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(
    QueryKeyNorm, LedgerOf,
    testing::Values(
        Case{"normed groups",
             {.heads = 4, .d_key = 2, .d_value = 3, .key_heads = 2, .query_key_norm = QueryKeyNorm::kL2},
             5},
        Case{"normed tied", kTied, 6}, Case{"rms", kRms, 5}, Case{"normed with a soft cap", kCappedCosine, 5},
        Case{"rms latent",
             {.heads = 2, .scores = Scores::kLatent, .latent_size = 3, .query_key_norm = QueryKeyNorm::kRms},
             6}),
    name_of_case);

TEST(NormalisedHeads, WhatCannotBe) {
  expect_problem(
      {.heads = 2, .scores = Scores::kMerged, .query_key_norm = QueryKeyNorm::kL2}, 8,
      "query_key_norm scales queries and keys, of which merged scores have none of their own; set scores to "
      "query_key");
  expect_problem(
      {.heads = 2, .scores = Scores::kMerged, .query_key_norm = QueryKeyNorm::kRms}, 8,
      "query_key_norm scales queries and keys, of which merged scores have none of their own; set scores to "
      "query_key");
}

}  // namespace
}  // namespace mh::test
