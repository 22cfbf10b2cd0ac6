// Differential heads: the difference of two softmaxes, and a norm of each head.
#include "tests/nn/geometries/suites.h"

namespace mh::test {
namespace {

inline double lambda_in_double(const Parameters& p, double start) {
  const D& vectors = p.at("lambda");
  double first = 0, second = 0;
  for (int64_t c = 0; c < vectors.cols(); ++c) {
    first += vectors(0, c) * vectors(1, c);
    second += vectors(2, c) * vectors(3, c);
  }
  return std::exp(first) - std::exp(second) + start;
}

/// lambda_init of Ye et al.
inline double lambda_start(int layer) {
  return 0.8 - 0.6 * std::exp(-0.3 * layer);
}

/// (1 - lambda_init) gain * x / rms(x), of one head's numbers of every row.
inline void norm_of_differential_head(const Parameters& p, double start, D& rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double squares = 0;
    for (int64_t c = 0; c < rows.cols(); ++c) squares += rows(i, c) * rows(i, c);
    const double rms = std::sqrt(squares / static_cast<double>(rows.cols()) + 1e-5);
    for (int64_t c = 0; c < rows.cols(); ++c) rows(i, c) *= (1 - start) * p.at("head_norm")(0, c) / rms;
  }
}

/// lambda, and each pair of averages made one head with a norm.
Rows difference(const HeadGeometry& g, const Rows& pairs) {
  Counted first, second;
  for (int c = 0; c < g.d_key; ++c) {
    multiply_add(Counted{0.1f}, Counted{0.1f}, first);
    multiply_add(Counted{0.1f}, Counted{0.1f}, second);
  }
  const Counted lambda = exponential(first) - exponential(second) + Counted{0.8f};
  const auto size = static_cast<size_t>(g.d_value);
  Rows out = zeros(static_cast<int64_t>(pairs.size()), int64_t{g.heads} * g.d_value);
  for (size_t i = 0; i < pairs.size(); ++i) {
    for (size_t h = 0; h < static_cast<size_t>(g.heads); ++h) {
      Counted squares;
      for (size_t c = 0; c < size; ++c) {
        Counted& u = out[i][h * size + c];
        u = pairs[i][2 * h * size + c] - lambda * pairs[i][(2 * h + 1) * size + c];
        squares = squares + u * u;
      }
      const Counted factor =
          Counted{0.2f} / root(squares * Counted{1.0f / static_cast<float>(size)} + Counted{1e-5f});
      for (size_t c = 0; c < size; ++c) out[i][h * size + c] = out[i][h * size + c] * factor * Counted{1};
    }
  }
  return out;
}

class DifferentialOracle final : public WeightOracle {
 public:
  int softmaxes() const override { return 2; }
  Maps weights(const Parameters& p, Maps scores, const Mask& mask, int64_t first) const override {
    const Maps weights = softmax_of(scores, mask, first);
    const double lambda = lambda_in_double(p, lambda_start(kLayer));
    Maps differences;
    for (size_t h = 0; h < weights.size(); h += 2) {
      D& map = differences.emplace_back(weights[h].rows(), weights[h].cols());
      for (int64_t n = 0; n < map.size(); ++n)
        map.data()[n] = weights[h].data()[n] - lambda * weights[h + 1].data()[n];
    }
    return differences;
  }
  void finish(const Parameters& p, D& out) const override {
    norm_of_differential_head(p, lambda_start(kLayer), out);
  }
  Rows counted_output(const HeadGeometry& g, Rows averages) const override { return difference(g, averages); }
};
const DifferentialOracle differential;
const Registered<WeightOracle, HeadWeights> register_differential(HeadWeights::kDifferential, differential);

using enum Positions;
const HeadGeometry kDifferentialGroups = {
    .heads = 4, .d_key = 2, .d_value = 3, .key_heads = 2, .weights = HeadWeights::kDifferential};
const HeadGeometry kCappedPairs = {
    .heads = 3, .d_key = 2, .d_value = 3, .weights = HeadWeights::kDifferential, .soft_cap = 0.75f};

INSTANTIATE_TEST_SUITE_P(
    Differential, Geometry,
    testing::Values(
        Case{"differential groups", kDifferentialGroups, 5},
        Case{"differential rotary", kDifferentialGroups, 5, {kRotary, AttentionDirection::kCausal}},
        Case{"differential alibi", kDifferentialGroups, 5, {kAlibi, AttentionDirection::kBidirectional}},
        Case{"differential t5", kDifferentialGroups, 5, {kT5, AttentionDirection::kCausal}},
        Case{"differential with a soft cap", kCappedPairs, 5, {kRotary, AttentionDirection::kCausal}}),
    name_of_case);
INSTANTIATE_TEST_SUITE_P(Differential, LedgerOf,
                         testing::Values(Case{"differential groups", kDifferentialGroups, 5},
                                         Case{"rotary differential", kDifferentialGroups, 5, {kRotary}},
                                         Case{"t5 differential", kDifferentialGroups, 5, {kT5}},
                                         Case{"differential with a soft cap", kCappedPairs, 5}),
                         name_of_case);

TEST(DifferentialHeads, WhatCannotBe) {
  expect_problem(
      {.heads = 2, .input = HeadInput::slices(), .weights = HeadWeights::kDifferential}, 8,
      "differential weights need two queries and two keys a head, of the whole row; set input to whole_row "
      "and scores to query_key");
  expect_problem({.heads = 2, .weights = HeadWeights::kDifferential}, 6,
                 "heads is 2, twice which does not divide d_model 6; set d_key, for example to 1");
}

}  // namespace
}  // namespace mh::test
