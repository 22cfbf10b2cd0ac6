#include "multihead/kernels/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/base/thread_pool.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/random_blocks.h"

namespace mh {
namespace {

struct Problem {
  Tensor states, table, bias;
  std::vector<int32_t> targets;
  PackedMatrix logits, gradient;
  std::optional<float> soft_cap;

  Problem(int64_t rows, int64_t width, int64_t vocabulary, double spread, std::optional<float> cap = {})
      : states(rows, width), table(vocabulary, width), bias(1, vocabulary), soft_cap(cap) {
    Random random(17);
    for (int64_t i = 0; i < states.size(); ++i)
      states.data()[i] = static_cast<float>(spread * random.normal());
    for (int64_t i = 0; i < table.size(); ++i) table.data()[i] = static_cast<float>(random.normal());
    for (int64_t i = 0; i < vocabulary; ++i) bias.data()[i] = static_cast<float>(random.normal());
    for (int64_t i = 0; i < rows; ++i)
      targets.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(vocabulary))));
    logits.pack_transposed(table.view());
    gradient.pack(table.view());
  }
  OutputLayer layer() const { return {&logits, GradientFactor{gradient, true}, bias.view(), soft_cap}; }
  double capped(double logit) const {
    return soft_cap ? double{*soft_cap} * std::tanh(logit / double{*soft_cap}) : logit;
  }
  /// d capped(logit) / d logit for every word.
  std::vector<double> slopes(int64_t row) const {
    std::vector<double> found = logits_of(row);
    for (double& z : found) z = soft_cap ? 1 - std::pow(std::tanh(z / double{*soft_cap}), 2) : 1;
    return found;
  }
  std::vector<double> logits_of(int64_t row) const {
    std::vector<double> z;
    for (int64_t w = 0; w < table.rows(); ++w) {
      double sum = bias(0, w);
      for (int64_t c = 0; c < table.cols(); ++c) sum += static_cast<double>(states(row, c)) * table(w, c);
      z.push_back(sum);
    }
    return z;
  }
  std::vector<double> log_softmax(int64_t row) const {
    std::vector<double> z = logits_of(row);
    for (double& x : z) x = capped(x);
    const double largest = *std::max_element(z.begin(), z.end());
    double total = 0;
    for (double x : z) total += std::exp(x - largest);
    for (double& x : z) x -= largest + std::log(total);
    return z;
  }
};

class Vocabulary : public testing::TestWithParam<int> {};

void expect_formula(int64_t rows, double spread, std::optional<float> soft_cap) {
  const int64_t width = 13, vocabulary = 211;
  const Problem p(rows, width, vocabulary, spread, soft_cap);
  constexpr double kSmoothing = 0.1, kScale = 0.25;
  Tensor d_states(rows, width), d_table(vocabulary, width), expected_d_states(rows, width);
  d_table.fill(2);  // added to
  BasicTensor<double> expected_d_table(vocabulary, width);
  expected_d_table.fill(2);
  double nll = 0, smoothed = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const auto log_p = p.log_softmax(r);
    const auto slopes = p.slopes(r);
    const int32_t target = p.targets[static_cast<size_t>(r)];
    double mean = 0;
    for (int64_t w = 0; w < vocabulary; ++w) {
      mean += log_p[static_cast<size_t>(w)] / static_cast<double>(vocabulary);
      const double d = kScale * slopes[static_cast<size_t>(w)] *
                       (std::exp(log_p[static_cast<size_t>(w)]) -
                        kSmoothing / static_cast<double>(vocabulary) - (w == target ? 1 - kSmoothing : 0));
      for (int64_t c = 0; c < width; ++c) {
        expected_d_states(r, c) += static_cast<float>(d * p.table(w, c));
        expected_d_table(w, c) += d * p.states(r, c);
      }
    }
    nll -= log_p[static_cast<size_t>(target)];
    smoothed -= (1 - kSmoothing) * log_p[static_cast<size_t>(target)] + kSmoothing * mean;
  }
  VocabularyScratch scratch;
  const auto sums = cross_entropy(p.layer(),
                                  {.states = p.states.view(),
                                   .targets = p.targets,
                                   .label_smoothing = kSmoothing,
                                   .scale = kScale,
                                   .d_states = d_states.view(),
                                   .d_embedding = d_table.view()},
                                  scratch);
  EXPECT_NEAR(sums.negative_log_likelihood, nll, 1e-5 * nll);
  EXPECT_NEAR(sums.smoothed, smoothed, 1e-5 * smoothed);
  for (int64_t i = 0; i < d_states.size(); ++i)
    ASSERT_NEAR(d_states.data()[i], expected_d_states.data()[i], 2e-5);
  for (int64_t i = 0; i < d_table.size(); ++i)
    ASSERT_NEAR(d_table.data()[i], expected_d_table.data()[i], 3e-5);

  const auto without = cross_entropy(p.layer(),
                                     {.states = p.states.view(),
                                      .targets = p.targets,
                                      .label_smoothing = kSmoothing,
                                      .d_states = {},
                                      .d_embedding = {}},
                                     scratch);
  EXPECT_EQ(without.negative_log_likelihood, sums.negative_log_likelihood);
  EXPECT_EQ(without.smoothed, sums.smoothed);

  std::vector<float> found(p.targets.size());
  log_probabilities(p.layer(), p.states.view(), p.targets, found, scratch);
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<size_t>(r);
    ASSERT_NEAR(found[at], p.log_softmax(r)[static_cast<size_t>(p.targets[at])], 2e-5);
  }
}

TEST_P(Vocabulary, LossAndGradientsFollowTheFormula) {
  expect_formula(GetParam(), 0.7, std::nullopt);
}

TEST_P(Vocabulary, LossAndGradientsOfCappedLogitsFollowTheFormula) {
  expect_formula(GetParam(), 0.7, 3.0f);
  expect_formula(GetParam(), 0.7, 1e6f);
  expect_formula(GetParam(), 12, 30.0f);  // most logits are far beyond the cap
}

void expect_best_candidates(int64_t rows, std::optional<float> soft_cap) {
  const int64_t vocabulary = 211;
  const Problem p(rows, 13, vocabulary, 0.7, soft_cap);
  const std::vector<int32_t> suppressed = {3, 150};
  VocabularyScratch scratch;
  for (int k : {1, 2, 10, 37}) {
    std::vector<Candidate> found(static_cast<size_t>(rows * k));
    best_candidates(p.layer(), p.states.view(), k, suppressed, found, scratch);
    for (int64_t r = 0; r < rows; ++r) {
      const auto log_p = p.log_softmax(r);
      std::vector<int32_t> order;
      for (int32_t w = 0; w < vocabulary; ++w) {
        if (w != 3 && w != 150) order.push_back(w);
      }
      std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return log_p[static_cast<size_t>(a)] > log_p[static_cast<size_t>(b)];
      });
      for (int i = 0; i < k; ++i) {
        const Candidate& c = found[static_cast<size_t>(r * k + i)];
        ASSERT_EQ(c.token, order[static_cast<size_t>(i)]) << "row " << r << " place " << i;
        ASSERT_NEAR(c.log_probability, log_p[static_cast<size_t>(c.token)], 2e-5);
      }
    }
  }
}

TEST_P(Vocabulary, BestCandidatesAreThoseOfASort) {
  expect_best_candidates(GetParam(), std::nullopt);
  expect_best_candidates(GetParam(), 10.0f);
}

// Around the sizes of row blocks (48) and chunks (256).
INSTANTIATE_TEST_SUITE_P(Rows, Vocabulary, testing::Values(1, 5, 47, 49, 255, 257));

TEST(VocabularyEdges, TiesGoToTheSmallerTokenInAnyGroup) {
  Problem p(3, 4, 601, 0);  // states are 0: every logit is its bias
  p.bias.fill(0.5f);
  p.bias(0, 17) = p.bias(0, 400) = 2;
  VocabularyScratch scratch;
  std::vector<Candidate> found(3 * 4);
  best_candidates(p.layer(), p.states.view(), 4, {}, found, scratch);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(found[static_cast<size_t>(4 * r)].token, 17);
    EXPECT_EQ(found[static_cast<size_t>(4 * r + 1)].token, 400);
    EXPECT_EQ(found[static_cast<size_t>(4 * r + 2)].token, 0);
    EXPECT_EQ(found[static_cast<size_t>(4 * r + 3)].token, 1);
  }
}

TEST(VocabularyEdges, HugeLogitsStayFinite) {
  const Problem p(7, 13, 211, 300);
  VocabularyScratch scratch;
  Tensor d_states(7, 13), d_table(211, 13);
  const auto sums = cross_entropy(p.layer(),
                                  {.states = p.states.view(),
                                   .targets = p.targets,
                                   .d_states = d_states.view(),
                                   .d_embedding = d_table.view()},
                                  scratch);
  EXPECT_TRUE(std::isfinite(sums.negative_log_likelihood));
  for (int64_t i = 0; i < d_table.size(); ++i) ASSERT_TRUE(std::isfinite(d_table.data()[i]));
}

TEST(VocabularyEdges, TablesOfBlocksGiveTheBitsOfTheirNumbers) {
  constexpr int64_t kWords = 1237, kWidth = 96, kRows = 263;  // two chunks
  const RandomBlocks blocks(BlockType::kQ4_1, kWords, kWidth, 3);
  const Tensor numbers = blocks.numbers();
  PackedMatrix small, floats, transposed;
  const BlockMatrix* const part = &blocks.matrix;
  small.pack_transposed({&part, 1}, Precision::kSame, [] {});
  floats.pack_transposed(numbers.view());
  transposed.pack(numbers.view());
  // The largest numbers are 65,504 times 15.
  const Problem p(kRows, kWidth, kWords, 1e-6);
  for (const std::optional<float> cap : {std::optional<float>(), std::optional<float>(2.0f)}) {
    const auto gradients = [&](const PackedMatrix& logits, const GradientFactor& gradient, Tensor& d_table) {
      Tensor d_states(kRows, kWidth);
      VocabularyScratch scratch;
      cross_entropy({&logits, gradient, p.bias.view(), cap},
                    {.states = p.states.view(),
                     .targets = p.targets,
                     .label_smoothing = 0.1f,
                     .d_states = d_states.view(),
                     .d_embedding = d_table.view()},
                    scratch);
      return d_states;
    };
    Tensor d_table(kWords, kWidth), expected_d_table(kWords, kWidth);
    const Tensor d_states = gradients(small, {small, false}, d_table),
                 expected = gradients(floats, {transposed, true}, expected_d_table);
    for (int64_t i = 0; i < d_states.size(); ++i) {
      ASSERT_EQ(d_states.data()[i], expected.data()[i]) << i;
      ASSERT_NE(d_states.data()[i], 0) << i;
    }
    EXPECT_EQ(std::memcmp(d_table.data(), expected_d_table.data(),
                          static_cast<size_t>(d_table.size()) * sizeof(float)),
              0);
  }
}

TEST(VocabularyEdges, AnyNumberOfThreadsGivesTheSameBits) {
  for (const std::optional<float> soft_cap : {std::optional<float>(), std::optional(5.0f)}) {
    const Problem p(300, 13, 1301, 0.7, soft_cap);
    std::vector<float> first;
    for (int threads : {1, 2, 3, 7}) {
      set_thread_count(threads);
      VocabularyScratch scratch;
      Tensor d_states(300, 13), d_table(1301, 13);
      cross_entropy(p.layer(),
                    {.states = p.states.view(),
                     .targets = p.targets,
                     .label_smoothing = 0.1f,
                     .d_states = d_states.view(),
                     .d_embedding = d_table.view()},
                    scratch);
      std::vector<float> bits(d_states.data(), d_states.data() + d_states.size());
      bits.insert(bits.end(), d_table.data(), d_table.data() + d_table.size());
      if (first.empty()) first = bits;
      EXPECT_EQ(first, bits) << threads;
    }
  }
  set_thread_count(2);
}

}  // namespace
}  // namespace mh
