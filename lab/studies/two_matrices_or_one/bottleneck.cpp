// 002.8: weights that a head with small queries and keys cannot have (Bhojanapalli et al. 2020).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

constexpr int kTokens = 3;

/// log P less the mean of each row.
Matrix centred_logs(const Matrix& p) {
  Matrix logs(p.rows(), p.cols());
  for (int64_t i = 0; i < p.rows(); ++i) {
    double mean = 0;
    for (int64_t j = 0; j < p.cols(); ++j) mean += std::log(p(i, j)) / static_cast<double>(p.cols());
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
  if (of_rank_one) {
    return softmax_rows(product(random_matrix(kTokens, 1, random), random_matrix(1, kTokens, random)));
  }
  return softmax_rows(sum(random_matrix(kTokens, kTokens, random, 0.3), identity(), 2));
}

struct Nearest {
  double logs = 1e30;     // norm of the difference of the centred logarithms
  double weights = 1e30;  // largest difference of a weight
};
/// Random searches for a head with this d_k whose weights are near to P; the least found, each for itself.
Nearest search(const Matrix& p, int d_key, Random& random) {
  const Matrix logs = centred_logs(p), x = identity();
  Nearest least;
  for (int start = 0; start < 40; ++start) {
    Head head{random_matrix(kTokens, d_key, random, 2), random_matrix(kTokens, d_key, random, 2), {}, {}};
    const auto distance = [&](const Head& of) {
      return norm(sum(centred_logs(weights(x, of, 1)), logs, -1));
    };
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

}  // namespace

/// The weights of a head are the softmax of scores of rank at most d_k. Their centred logarithms are the
/// centred scores, S (I - 1 1^T / T), so their rank is at most d_k, too. The matrix of rank 1 that is nearest
/// to the centred logarithms of P is as far away as their other singular values say (Eckart and Young 1936).
/// With T = 3 and centred rows there is one other: the second.
/// mistake 1: the row means are left in; 2: the third key has the other sign; 3: P is made from scores of rank
/// 1; 4: the searches have d_k = 2.
Claim bottleneck(const AlgebraCase& a) {
  Claim claim{
      .id = "002.8",
      .statement =
          "With d_k below T - 1 there are weights that no head can have: the logarithms of P, without "
          "their row means, must have rank at most d_k (Bhojanapalli et al. 2020). For T = 3, d_k = 1 "
          "is too small and d_k = 2 suffices."};
  Random random(a.seed, 28);
  const Matrix p = wanted_weights(random, a.mistake == 3);
  const Matrix logs = centred_logs(p);
  Matrix looked_at = logs;
  if (a.mistake == 1) {
    for (int i = 0; i < kTokens; ++i) {
      for (int j = 0; j < kTokens; ++j) looked_at(i, j) = std::log(p(i, j));
    }
  }
  const std::vector<double> values = svd(looked_at.view()).values;
  claim.clauses.push_back(
      algebraic("The centred logarithms of the P that was built have rank 2.",
                "two singular values above 1e-9 of the first",
                fmt::format("singular values {:.3f}, {:.3f}, {:.1e}", values[0], values[1], values[2]),
                numeric_rank(values, 1e-9) == 2));
  // With x the identity W^Q W^K^T is the matrix of scores. The rows of the centred logarithms sum to 0, so
  // their first two columns give the third: logs = [c_0 c_1] [[1, 0, -1], [0, 1, -1]].
  Head two{columns(logs, 0, 2), Matrix(kTokens, 2), {}, {}};
  two.k(0, 0) = two.k(1, 1) = 1;
  two.k(2, 0) = two.k(2, 1) = a.mistake == 2 ? 1 : -1;
  const double with_two = largest_difference(weights(identity(), two, 1), p);
  claim.clauses.push_back(algebraic("A head with d_k = 2 has exactly these weights.",
                                    "largest difference of a weight at most 1e-9",
                                    fmt::format("{:.1e}", with_two), with_two <= 1e-9));
  const double bound = svd(logs.view()).values[1];
  claim.clauses.push_back(algebraic(
      "No head with d_k = 1 comes near: the second singular value is the least distance of its centred "
      "logarithms.",
      "above 0.1", fmt::format("{:.3f}, of a norm of {:.3f}", bound, norm(logs)), bound > 0.1));
  const Nearest found = search(p, a.mistake == 4 ? 2 : 1, random);
  claim.clauses.push_back(
      algebraic("No search for a head with d_k = 1 falls below that distance.",
                "the best of 40 searches is at least the second singular value",
                fmt::format("{:.6f} against {:.6f}; its nearest weights are {:.2f} away from P", found.logs,
                            bound, found.weights),
                found.logs >= bound * (1 - 1e-9)));
  return claim;
}

}  // namespace mh::two_matrices_or_one
