// 002: why two matrices? What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"

namespace mh::two_matrices_or_one {

using namespace lab;

/// mistake 1: W^Q is transposed in the one matrix; 2: the step of W_i alone is taken for that of the product;
/// 3: the step of the one matrix is taken for it.
Claim doubled_step(const AlgebraCase& a) {
  constexpr int kModel = 9, kKey = 4;
  constexpr double kEta = 1e-4;
  Claim claim{.id = "002.5",
              .statement =
                  "The doubled projection x W^Q W_i^Q computes nothing that one matrix could not, but a "
                  "gradient step "
                  "moves the product in another direction.",
              .original_words =
                  "\"Matrices W^Q, W^K, W^V (each d_model x d_model) are completely removed instead.\""};
  Random random(a.seed, 25);
  const Matrix x = random_matrix(8, kModel, random), seed = random_matrix(8, kModel, random);
  Layer doubled({.heads = 1, .d_key = kKey, .scores = Scores::kDoubled, .biases = Biases::kNone}, kModel,
                a.seed);
  Layer single({.heads = 1, .d_key = kKey, .biases = Biases::kNone}, kModel, a.seed + 1);
  const Matrix w = doubled.parameter("w_before_q"), w_i = doubled.parameter("w_q");
  const std::vector<std::string> names = doubled.names();
  for (const char letter : {'q', 'k', 'v'}) {
    const std::string own = std::string("w_") + letter, before = std::string("w_before_") + letter;
    const bool has = std::find(names.begin(), names.end(), before) != names.end();
    const Matrix second = doubled.parameter(own);
    if (!has) {
      single.set(own, second);
      continue;
    }
    const Matrix first = doubled.parameter(before);
    single.set(own, product(a.mistake == 1 ? transposed(first) : first, second));
  }
  single.set("w_o", doubled.parameter("w_o"));
  const Matrix expected = single.output(x);
  const double same = largest_difference(doubled.output(x), expected) / largest(expected);
  claim.clauses.push_back(algebraic(
      "It is the same function as the one matrix W^Q W_i^Q.", "outputs equal to 1e-5 of the largest",
      fmt::format("largest difference {:.1e}", same), same <= 1e-5, OriginalSays::kSame));
  doubled.output_gradients(x, seed);
  single.output_gradients(x, seed);
  const Matrix g = single.gradient("w_q");
  const Matrix stepped_w = sum(w, doubled.gradient("w_before_q"), -kEta),
               stepped_w_i = sum(w_i, doubled.gradient("w_q"), -kEta);
  const Matrix moved = a.mistake == 3
                           ? scaled(g, -kEta)
                           : sum(product(stepped_w, a.mistake == 2 ? w_i : stepped_w_i), product(w, w_i), -1);
  const Matrix predicted =
      scaled(sum(product(product_transposed(w, w), g), product(g, product(transposed(w_i), w_i))), -kEta);
  const double error = norm(sum(moved, predicted, -1)) / norm(predicted);
  claim.clauses.push_back(
      algebraic("A step of eta moves the product by -eta (W^Q W^Q^T G + G W_i^T W_i), where G is its "
                "gradient and W_i is "
                "W_i^Q.",
                "the step of the layer is within 1e-3 of the norm of the formula",
                fmt::format("{:.1e} of the norm away", error), error <= 1e-3));
  const double aligned = cosine(moved, scaled(g, -kEta));
  claim.clauses.push_back(algebraic("That is not the direction -G in which the one matrix moves.",
                                    "cosine with -G below 0.99", fmt::format("cosine {:.2f}", aligned),
                                    aligned < 0.99));
  return claim;
}

/// mistake 1: the heads' scale is that of one head of size d; 2: W^K does not start as a copy.
Claim aggcn(const AlgebraCase& a) {
  constexpr int kModel = 12, kHeads = 3, kSize = 4;
  Claim claim{
      .id = "002.7",
      .statement =
          "The d x d matrices of AGGCN (Guo et al. 2019) are neither a typo nor larger heads: they "
          "are the matrices [d, d/h] of all heads side by side.",
      .original_words =
          "BioBroo: \"have W^Q and W^K be of dimension d_model x d_model. I don't know if there is a reason "
          "for this, or if it's a typo.\"",
      .original_remark = "It is a question; (a) answers it."};
  Random random(a.seed, 27);
  const Matrix x = random_matrix(6, kModel, random);
  HeadGeometry geometry = geometry_preset("aggcn", kHeads, kModel);
  geometry.biases = Biases::kNone;
  if (a.mistake == 2) geometry.initialisation = HeadInitialisation::kXavierPacked;
  Layer layer(geometry, kModel, a.seed);
  std::vector<Head> heads;
  double asymmetry = 0;
  for (int h = 0; h < kHeads; ++h) {
    const auto part = [&](const char* name) {
      return columns(layer.parameter(name), h * kSize, (h + 1) * kSize);
    };
    Head head{part("w_q"), part("w_k"), part("w_v"),
              transposed(columns(transposed(layer.parameter("w_o")), h * kSize, (h + 1) * kSize))};
    const Matrix s = scores(x, head);
    asymmetry = std::max(asymmetry, largest_difference(s, transposed(s)) / largest(s));
    heads.push_back(std::move(head));
  }
  const Matrix expected = multi_head(x, heads, 1 / std::sqrt(a.mistake == 1 ? kModel : kSize));
  const double difference = largest_difference(layer.output(x), expected) / largest(expected);
  claim.clauses.push_back(algebraic("One product with [d, d] and h heads of [d, d/h] give the same output.",
                                    "outputs equal to 1e-5 of the largest",
                                    fmt::format("largest difference {:.1e}", difference),
                                    difference <= 1e-5));
  claim.clauses.push_back(
      algebraic("AGGCN starts W^K as a copy of W^Q, so the scores are symmetric at the start.",
                "symmetric to 1e-6 of the largest", fmt::format("largest difference {:.1e}", asymmetry),
                asymmetry <= 1e-6));
  return claim;
}

std::span<const AlgebraCheck> algebra() {
  static constexpr AlgebraCheck kChecks[] = {{"002.1", one_matrix},   {"002.3", numbers_to_keep},
                                             {"002.5", doubled_step}, {"002.6", stored_afresh},
                                             {"002.7", aggcn},        {"002.8", bottleneck}};
  return kChecks;
}

}  // namespace mh::two_matrices_or_one
