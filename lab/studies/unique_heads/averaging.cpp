// 003.5: "With a single attention head, averaging inhibits this" (Vaswani et al. 2017, section 3.2.2), as a
// task: a query wants P x_a + R x_b of two other words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/tensor/linear_algebra.h"
#include "multihead/train/adam.h"

namespace mh::unique_heads {
namespace {

using namespace lab;

constexpr int kWords = 4, kContent = 3, kRow = kContent + kWords, kBatch = 64;

/// With one head whose weights go by positions the output is M (alpha x_a + beta x_b), so the error is at
/// least what the best rank-one matrix misses of [vec P, vec R]: the square of its second singular value (x
/// normal, Eckart and Young 1936).
double least_error(const Matrix& p, const Matrix& r) {
  Matrix both(p.size(), 2);
  for (int64_t i = 0; i < p.size(); ++i) both(i, 0) = p.data()[i], both(i, 1) = r.data()[i];
  const double second = svd(both.view()).values[1];
  return second * second;
}

struct Batch {
  Tensor x;       // [kBatch * kWords, kRow]: content, then which word it is
  Matrix target;  // [kBatch, kContent], of word 0
  Ragged ragged = Ragged::from_lengths(std::vector<int32_t>(kBatch, kWords));
};

Batch make_batch(const Matrix& p, const Matrix& r, Random& random) {
  Batch b{Tensor(int64_t{kBatch} * kWords, kRow), Matrix(kBatch, kContent)};
  for (int s = 0; s < kBatch; ++s) {
    Matrix words = random_matrix(kWords, kContent, random);
    for (int t = 0; t < kWords; ++t) {
      for (int c = 0; c < kContent; ++c) b.x(s * kWords + t, c) = static_cast<float>(words(t, c));
      b.x(s * kWords + t, kContent + t) = 3;
    }
    for (int i = 0; i < kContent; ++i) {
      for (int j = 0; j < kContent; ++j) b.target(s, i) += p(i, j) * words(1, j) + r(i, j) * words(2, j);
    }
  }
  return b;
}

/// Mean squared error, summed over the outputs, in the last fifth of the training. `wide`: a feed-forward
/// layer of that width stands between attention and the read-out (0: none).
double trained_error(int heads, int wide, const Matrix& p, const Matrix& r, uint64_t seed, int updates) {
  Layer layer({.heads = heads, .d_key = 4, .d_value = kRow}, kRow, seed);
  Random random(seed, 351);
  Parameter in(kRow, std::max(1, wide)), in_bias(1, std::max(1, wide)), read(wide ? wide : kRow, kContent),
      read_bias(1, kContent);
  for (Parameter* w : {&in, &read}) {
    w->value = in_float(random_matrix(w->value.rows(), w->value.cols(), random,
                                      1 / std::sqrt(static_cast<double>(w->value.rows()))));
  }
  Affine inner({&in}, {&in_bias}), readout({&read}, {&read_bias});
  std::vector<NamedParameter> learned = {{"read", &read}, {"read_bias", &read_bias}};
  if (wide) learned.insert(learned.end(), {{"in", &in}, {"in_bias", &in_bias}});
  layer.attention().visit("layer", [&](const std::string& name, Parameter& q) {
    learned.push_back({name, &q});
  });
  Adam adam(learned, {.beta2 = 0.99});
  double late = 0;
  int counted = 0;
  for (int update = 1; update <= updates; ++update) {
    const Batch batch = make_batch(p, r, random);
    Tape tape(Tape::Mode::kRecord);
    Context context{.tape = tape};
    const Var x = tape.constant(const_cast<Tensor&>(batch.x).view());
    const Var heads_out = layer.attention().self_heads(
        context, x, {.ids = {}, .ragged = &batch.ragged, .sentences = {}}, Mask::none());
    Var h = affine(tape, heads_out, *layer.attention().output());
    if (wide) h = affine(tape, h, inner, {.activation = Activation::kRelu, .dropout = {}});
    const Var y = affine(tape, h, readout);
    Tensor seed_of(y.rows(), kContent);
    double error = 0;
    for (int s = 0; s < kBatch; ++s) {
      for (int c = 0; c < kContent; ++c) {
        const double difference = static_cast<double>(y.value()(int64_t{s} * kWords, c)) - batch.target(s, c);
        error += difference * difference / kBatch;
        seed_of(int64_t{s} * kWords, c) = static_cast<float>(2 * difference / kBatch);
      }
    }
    tape.seed(y, seed_of.view());
    tape.backward();
    adam.update(0.01 * std::min(1.0, 4.0 * (updates - update) / updates));
    if (update > updates * 4 / 5) late += error, ++counted;
  }
  return late / counted;
}

}  // namespace

Claim averaging_inhibits(uint64_t seed, int updates) {
  Claim claim{
      .id = "003.5",
      .statement =
          "One head computes one weighted average: trained, it misses a target P x_a + R x_b with P and R "
          "not "
          "proportional, and two heads reach it. A feed-forward layer behind the one head does not help.",
      .original_words =
          "\"With a single attention head, averaging inhibits this\" (the paper, quoted in the answer).",
      .original_statement = OriginalStatement::kRight,
      .tolerance =
          "h = 1, with and without feed-forward: error at least 5 % of the target's variance; h = 2: at most "
          "a hundredth of that of h = 1",
      .trained = true};
  Random random(seed, 350);
  const Matrix p = random_matrix(kContent, kContent, random), r = random_matrix(kContent, kContent, random);
  const double bound = least_error(p, r), variance = norm(p) * norm(p) + norm(r) * norm(r);
  const double one = trained_error(1, 0, p, r, seed, updates),
               one_wide = trained_error(1, 32, p, r, seed, updates),
               two = trained_error(2, 0, p, r, seed, updates);
  const auto row = [&](const char* what, double error) {
    return std::vector<std::string>{what, fmt::format("{:.4f}", error),
                                    fmt::format("{:.2f}", 100 * error / variance)};
  };
  claim.tables.push_back(
      {"mean squared error after training",
       {"layer", "error", "% of the target's variance"},
       {row("one head whose weights depend on positions alone: lower bound", bound), row("h = 1", one),
        row("h = 1 and feed-forward of 32", one_wide), row("h = 2", two)}});
  claim.measured = fmt::format(
      "of the target's variance h = 1 misses {:.1f} %, with feed-forward {:.1f} %, h = 2 {:.3f} %; weights "
      "that depend on the words too let h = 1 fall below the bound for positions alone, but not to 0",
      100 * one / variance, 100 * one_wide / variance, 100 * two / variance);
  const bool right = one >= 0.05 * variance && one_wide >= 0.05 * variance && two <= 0.01 * one;
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

}  // namespace mh::unique_heads
