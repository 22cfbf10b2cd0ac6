// 004.2 and 004.3: h heads, and one head with the same matrices side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"

namespace mh::one_product {
namespace {

using namespace lab;

constexpr HeadSizes kSizes{.heads = 3, .d_model = 12, .d_key = 4, .d_value = 4};

struct Stacked {
  std::vector<Head> heads;
  Head one;  // the heads' matrices side by side
  Matrix x;
  double scale = 1 / std::sqrt(kSizes.d_key);           // of a head
  double single_scale = 1 / std::sqrt(kSizes.d_model);  // of the single head, whose d_k is d
};
Stacked stacked(uint64_t seed) {
  Random random(seed, 42);
  Stacked s;
  s.heads = random_heads(kSizes, random);
  std::vector<Matrix> q, k, v, o;
  for (const Head& head : s.heads) {
    q.push_back(head.q), k.push_back(head.k), v.push_back(head.v), o.push_back(transposed(head.o));
  }
  s.one = {beside(q), beside(k), beside(v), transposed(beside(o))};
  s.x = random_matrix(8, kSizes.d_model, random);
  return s;
}

/// The heads' weights multiplied, each to this power, with rows that sum to 1.
Matrix multiplied_weights(const Stacked& s, double power) {
  Matrix logs(s.x.rows(), s.x.rows());
  for (const Head& head : s.heads) {
    Matrix w = weights(s.x, head, s.scale);
    for (int64_t i = 0; i < w.size(); ++i) w.data()[i] = std::log(w.data()[i]);
    logs = sum(logs, w, power);
  }
  return softmax_rows(std::move(logs));
}

}  // namespace

/// mistake 1: a head is left out of the sum; 2: the single head's own weights are among the heads'; 3: the power
/// is 1.
Claim scores_add_up(const AlgebraCase& a) {
  Claim claim{
      .id = "004.2",
      .statement =
          "The heads' scores add up to those of one head with the same matrices side by side, but its "
          "softmax "
          "is not theirs: h matrices of weights against one.",
      .original_words =
          "\"Work out the dimensions of your attention matrix ... You get only one attention matrix.\""};
  const Stacked s = stacked(a.seed);
  Matrix total(s.x.rows(), s.x.rows());
  for (size_t h = a.mistake == 1 ? 1 : 0; h < s.heads.size(); ++h)
    total = sum(total, scores(s.x, s.heads[h]));
  const Matrix whole = scores(s.x, s.one);
  const double difference = largest_difference(total, whole) / largest(whole);
  claim.clauses.push_back(algebraic(
      "sum_i Q_i K_i^T = Q K^T: the scores add up to one matrix.", "equal to 1e-12 of the largest",
      fmt::format("largest difference {:.1e}", difference), difference <= 1e-12, OriginalSays::kSame));
  const Matrix single = weights(s.x, s.one, s.single_scale);
  double nearest = 1;
  for (size_t h = 0; h < s.heads.size(); ++h) {
    const Matrix own = a.mistake == 2 && h == 0 ? single : weights(s.x, s.heads[h], s.scale);
    nearest = std::min(nearest, largest_difference(own, single));
  }
  claim.clauses.push_back(algebraic("The weights of no head are those of the single head.",
                                    "a weight differs by more than 0.05 for each head",
                                    fmt::format("the nearest head differs by {:.2f}", nearest),
                                    nearest > 0.05, OriginalSays::kSame));
  const double power = a.mistake == 3 ? 1 : 1 / std::sqrt(kSizes.heads);
  const double multiplied = largest_difference(multiplied_weights(s, power), single);
  claim.clauses.push_back(algebraic(
      "They are the heads' weights multiplied, each to the power 1/sqrt(h), with rows that sum to 1: a key "
      "gets a large weight only where the heads agree on it.",
      "equal to 1e-12, with the scales 1/sqrt(d_k) of the heads and 1/sqrt(d) of the single head",
      fmt::format("largest difference {:.1e}", multiplied), multiplied <= 1e-12));
  return claim;
}

/// mistake 1: the heads, too, take the single head's weights; 2: the first head's weights instead of the
/// single head's.
Claim outputs_differ(const AlgebraCase& a) {
  Claim claim{
      .id = "004.3",
      .statement = "Hence one head with the same numbers computes something else.",
      .original_words =
          "\"This is not the same output as one full sized output generated using one attention matrix.\""};
  const Stacked s = stacked(a.seed);
  const Matrix of_one = weights(s.x, s.one, s.single_scale);
  const Matrix single = product(product(of_one, product(s.x, s.one.v)), s.one.o);
  const auto with = [&](const std::function<Matrix(const Head&)>& weights_of) {
    Matrix y(single.rows(), single.cols());
    for (const Head& head : s.heads)
      y = sum(y, product(product(weights_of(head), product(s.x, head.v)), head.o));
    return y;
  };
  const Matrix many =
      with([&](const Head& head) { return a.mistake == 1 ? of_one : weights(s.x, head, s.scale); });
  const double distance = norm(sum(many, single, -1)) / norm(many);
  claim.clauses.push_back(
      algebraic("Three heads and one head with the same W^Q, W^K, W^V and W^O have different outputs.",
                "further than 0.05 of the norm apart", fmt::format("{:.2f} of the norm apart", distance),
                distance > 0.05, OriginalSays::kSame));
  const Matrix shared =
      with([&](const Head&) { return a.mistake == 2 ? weights(s.x, s.heads[0], s.scale) : of_one; });
  const double left = largest_difference(shared, single) / largest(single);
  claim.clauses.push_back(algebraic(
      "The weights alone are the cause: with the single head's weights in each head the outputs agree.",
      "equal to 1e-12 of the largest", fmt::format("largest difference {:.1e}", left), left <= 1e-12));
  return claim;
}

}  // namespace mh::one_product
