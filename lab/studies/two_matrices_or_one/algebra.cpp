// 002: why two matrices? What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/claim_words.h"
#include "lab/studies/two_matrices_or_one/claims.h"

namespace mh::two_matrices_or_one {

using namespace lab;

void decide_equal(Claim& claim, double difference, double limit) {
  decide(claim, difference <= limit, fmt::format("largest difference {:.1e}", difference));
}

namespace {

/// mistake 1: W^Q is transposed in the one matrix; 2: the step of W_i alone is taken for that of the product;
/// 3: the step of the one matrix is taken for it.
Claim doubled_step(const AlgebraCase& a) {
  constexpr int kModel = 9, kKey = 4;
  constexpr double kEta = 1e-4;
  Claim claim = claim_without_figures("002.5");
  Random random(a.seed, 25);
  const Matrix x = random_matrix(8, kModel, random), seed = random_matrix(8, kModel, random);
  Layer doubled({.heads = 1, .d_key = kKey, .scores = Scores::kDoubled, .biases = Biases::kNone}, kModel,
                a.seed);
  Layer single({.heads = 1, .d_key = kKey, .biases = Biases::kNone}, kModel, a.seed + 1);
  for (const std::string part : {"q", "k", "v"}) {
    const Matrix before = doubled.parameter("w_before_" + part);
    single.set("w_" + part,
               product(a.mistake == 1 ? transposed(before) : before, doubled.parameter("w_" + part)));
  }
  single.set("w_o", doubled.parameter("w_o"));
  decide_equal(claim, relative_difference(doubled.output(x), single.output(x)));
  doubled.output_gradients(x, seed);
  single.output_gradients(x, seed);
  const Matrix w = doubled.parameter("w_before_q"), w_i = doubled.parameter("w_q");
  const Matrix g = single.gradient("w_q"), straight = scaled(g, -kEta);
  const Matrix stepped_w = sum(w, doubled.gradient("w_before_q"), -kEta),
               stepped_w_i = sum(w_i, doubled.gradient("w_q"), -kEta);
  const Matrix moved = a.mistake == 3
                           ? straight
                           : sum(product(stepped_w, a.mistake == 2 ? w_i : stepped_w_i), product(w, w_i), -1);
  const Matrix predicted =
      scaled(sum(product(product_transposed(w, w), g), product(g, product(transposed(w_i), w_i))), -kEta);
  const double error = norm(sum(moved, predicted, -1)) / norm(predicted);
  decide(claim, error <= 1e-3, fmt::format("{:.1e} of the norm away", error));
  const double aligned = cosine(moved, straight);
  decide(claim, aligned < 0.99, fmt::format("cosine {:.2f}", aligned));
  return claim;
}

/// mistake 1: the heads' scale is that of one head of size d; 2: W^K does not start as a copy.
Claim aggcn(const AlgebraCase& a) {
  constexpr int kModel = 12, kHeads = 3, kSize = 4;
  Claim claim = claim_without_figures("002.7");
  Random random(a.seed, 27);
  const Matrix x = random_matrix(6, kModel, random);
  HeadGeometry geometry = geometry_preset("aggcn", kHeads, kModel);
  geometry.biases = Biases::kNone;
  if (a.mistake == 2) geometry.initialisation = HeadInitialisation::kXavierPacked;
  Layer layer(geometry, kModel, a.seed);
  std::vector<Head> heads;
  double asymmetry = 0;
  for (int h = 0; h < kHeads; ++h) {
    const auto own = [&](const Matrix& all) { return columns(all, h * kSize, (h + 1) * kSize); };
    heads.push_back({own(layer.parameter("w_q")), own(layer.parameter("w_k")), own(layer.parameter("w_v")),
                     transposed(own(transposed(layer.parameter("w_o"))))});
    const Matrix s = scores(x, heads.back());
    asymmetry = std::max(asymmetry, relative_difference(transposed(s), s));
  }
  const Matrix expected = multi_head(x, heads, 1 / std::sqrt(a.mistake == 1 ? kModel : kSize));
  decide_equal(claim, relative_difference(layer.output(x), expected));
  decide_equal(claim, asymmetry, 1e-6);
  return claim;
}

constexpr int kTokens = 3;

/// log P, less the mean of each row when they are to be centred.
Matrix logs_of(const Matrix& p, bool centred = true) {
  Matrix logs(p.rows(), p.cols());
  for (int64_t i = 0; i < p.rows(); ++i) {
    double mean = 0;
    for (int64_t j = 0; centred && j < p.cols(); ++j)
      mean += std::log(p(i, j)) / static_cast<double>(p.cols());
    for (int64_t j = 0; j < p.cols(); ++j) logs(i, j) = std::log(p(i, j)) - mean;
  }
  return logs;
}

Matrix identity() {
  Matrix a(kTokens, kTokens);
  for (int i = 0; i < kTokens; ++i) a(i, i) = 1;
  return a;
}

/// Positive rows that sum to 1. Each word looks mostly at itself: no order of the keys serves all rows.
Matrix wanted_weights(Random& random, bool of_rank_one) {
  if (of_rank_one)
    return softmax_rows(product(random_matrix(kTokens, 1, random), random_matrix(1, kTokens, random)));
  return softmax_rows(sum(random_matrix(kTokens, kTokens, random, 0.3), identity(), 2));
}

struct Nearest {
  double logs = 1e30;     // norm of the difference of the centred logarithms
  double weights = 1e30;  // largest difference of a weight
};
/// Random searches for a head with this d_k whose weights are near to P; the least found, each for itself.
Nearest search(const Matrix& p, int d_key, Random& random) {
  const Matrix logs = logs_of(p), x = identity();
  const auto distance = [&](const Head& head) { return norm(sum(logs_of(weights(x, head, 1)), logs, -1)); };
  Nearest least;
  for (int start = 0; start < 40; ++start) {
    Head head{random_matrix(kTokens, d_key, random, 2), random_matrix(kTokens, d_key, random, 2), {}, {}};
    double step = 1, best = distance(head);
    for (int i = 0; i < 2000 && step > 1e-6; ++i) {
      Head near = head;
      near.q = sum(near.q, random_matrix(kTokens, d_key, random), step);
      near.k = sum(near.k, random_matrix(kTokens, d_key, random), step);
      const double found = distance(near);
      if (found < best)
        best = found, head = std::move(near);
      else
        step *= 0.99;
    }
    least.logs = std::min(least.logs, best);
    least.weights = std::min(least.weights, largest_difference(weights(x, head, 1), p));
  }
  return least;
}

/// 002.8: weights that a head with small queries and keys cannot have (Bhojanapalli et al. 2020).
///
/// The weights of a head are the softmax of scores of rank at most d_k. Their centred logarithms are the
/// centred scores, S (I - 1 1^T / T), so their rank is at most d_k, too. The matrix of rank 1 that is nearest
/// to the centred logarithms of P is as far away as their other singular values say (Eckart and Young 1936).
/// With T = 3 and centred rows there is one other: the second.
/// mistake 1: the row means are left in; 2: the third key has the other sign; 3: P is made from scores of rank
/// 1; 4: the searches have d_k = 2.
Claim bottleneck(const AlgebraCase& a) {
  Claim claim = claim_without_figures("002.8");
  Random random(a.seed, 28);
  const Matrix p = wanted_weights(random, a.mistake == 3), logs = logs_of(p);
  const std::vector<double> values = svd(logs_of(p, a.mistake != 1).view()).values;
  decide(claim, numeric_rank(values, 1e-9) == 2,
         fmt::format("singular values {:.3f}, {:.3f}, {:.1e}", values[0], values[1], values[2]));
  // With x the identity W^Q W^K^T is the matrix of scores. The rows of the centred logarithms sum to 0, so
  // their first two columns give the third: logs = [c_0 c_1] [[1, 0, -1], [0, 1, -1]].
  Head two{columns(logs, 0, 2), Matrix(kTokens, 2), {}, {}};
  two.k(0, 0) = two.k(1, 1) = 1;
  two.k(2, 0) = two.k(2, 1) = a.mistake == 2 ? 1 : -1;
  const double with_two = largest_difference(weights(identity(), two, 1), p);
  decide(claim, with_two <= 1e-9, fmt::format("{:.1e}", with_two));
  const double bound = svd(logs.view()).values[1];
  decide(claim, bound > 0.1, fmt::format("{:.3f}, of a norm of {:.3f}", bound, norm(logs)));
  const Nearest found = search(p, a.mistake == 4 ? 2 : 1, random);
  decide(claim, found.logs >= bound * (1 - 1e-9),
         fmt::format("{:.6f} against {:.6f}; its nearest weights are {:.2f} away from P", found.logs, bound,
                     found.weights));
  return claim;
}

}  // namespace

std::span<const AlgebraCheck> algebra() {
  static constexpr AlgebraCheck kChecks[] = {{"002.1", one_matrix},   {"002.3", numbers_to_keep},
                                             {"002.5", doubled_step}, {"002.6", stored_afresh},
                                             {"002.7", aggcn},        {"002.8", bottleneck}};
  return kChecks;
}

}  // namespace mh::two_matrices_or_one
