#include <fmt/format.h>

#include <algorithm>

#include "lab/studies/unique_heads/algebra.h"

namespace mh::unique_heads {
namespace {

using lab::Matrix;

constexpr int kInputs = 12, kUpdates = 20;  // d

struct PairGradient {
  double size = 0, difference = 0;  // of the first head's; from the second head's
};
/// Gradients of W^Q, W^K and W^V.
PairGradient gradients_of_pair(lab::Layer& layer, const Matrix& x, const Matrix& towards) {
  layer.clear_gradients();
  layer.output_gradients(x, towards);
  PairGradient found;
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    const int size = name[2] == 'v' ? layer.geometry().d_value : layer.geometry().d_key;
    const Matrix g = layer.gradient(name), first = lab::columns(g, 0, size);
    found.size = std::max(found.size, lab::largest(first));
    found.difference =
        std::max(found.difference, lab::largest_difference(first, lab::columns(g, size, 2 * size)));
  }
  return found;
}

/// The largest difference between the weights of the first two heads after updates w -= 0.01 gradient.
double apart_after_updates(lab::Layer& layer, const Matrix& x, const Matrix& towards) {
  for (int update = 0; update < kUpdates; ++update) {
    layer.clear_gradients();
    layer.output_gradients(x, towards);
    for (const std::string& name : layer.names())
      layer.set(name, lab::sum(layer.parameter(name), layer.gradient(name), -0.01));
  }
  double apart = 0;
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    const int size = name[2] == 'v' ? layer.geometry().d_value : layer.geometry().d_key;
    const Matrix w = layer.parameter(name);
    apart =
        std::max(apart, lab::largest_difference(lab::columns(w, 0, size), lab::columns(w, size, 2 * size)));
  }
  return apart;
}

}  // namespace

/// mistake 1: the full-size heads start equal; 2, 3, 7: the twin keeps a W_i^O of its own; 4: W^O is 0;
/// 5: the unequal heads are equal; 6: W^O is small, not 0.
Claim equal_gradients(const AlgebraCase& a) {
  Claim claim{
      .id = "003.2",
      .statement =
          "No, heads do not differ because q, k and v are cut into smaller pieces: they differ because "
          "they start with different numbers. Heads that start equal stay equal.",
      .original_words =
          "The asker: \"Is it because we break query, key and value vectors into smaller dimensions?\" The "
          "answer: \"nothing really prevents the weights from being different ... gradient descent learns "
          "to do that.\"",
      .original_remark = "Neither of the two speaks of the numbers that the weights start with."};
  Random random(a.seed, 32);
  const Matrix x = lab::random_matrix(8, kInputs, random), towards = lab::random_matrix(8, kInputs, random);
  const auto layer_of = [&](int heads, int size) {
    return lab::Layer({.heads = heads, .d_key = size, .biases = Biases::kNone}, kInputs, a.seed);
  };
  lab::Layer full = layer_of(3, kInputs), small = layer_of(6, kInputs / 6), equal = layer_of(3, 5),
             moving = layer_of(3, 5), unequal = layer_of(3, 5), silent = layer_of(3, 5);
  if (a.mistake == 1) copy_head(full, 0, 1, true);
  copy_head(small, 0, 1, a.mistake != 2);
  copy_head(equal, 0, 1, a.mistake != 3);
  if (a.mistake == 4) equal.set("w_o", Matrix(15, kInputs));
  if (a.mistake == 5) copy_head(unequal, 0, 1, true);
  silent.set("w_o", lab::scaled(silent.parameter("w_o"), a.mistake == 6 ? 1e-3 : 0));
  copy_head(moving, 0, 1, a.mistake != 7);
  const PairGradient of_full = gradients_of_pair(full, x, towards),
                     of_small = gradients_of_pair(small, x, towards),
                     of_equal = gradients_of_pair(equal, x, towards),
                     of_unequal = gradients_of_pair(unequal, x, towards),
                     of_silent = gradients_of_pair(silent, x, towards);
  const double apart = apart_after_updates(moving, x, towards);
  const auto found = [](const PairGradient& g) {
    return fmt::format("largest difference {:.2g}, largest gradient {:.2g}", g.difference, g.size);
  };
  const auto differ = [](const PairGradient& g) { return g.difference > 1e-3 * g.size; };
  claim.clauses = {
      algebraic(
          "Full-size heads (d_k = d_v = d) that start different get different gradients: small pieces are "
          "not what makes heads differ.",
          "a difference above 0.001 of the largest gradient", found(of_full), differ(of_full),
          OriginalSays::kOpposite),
      algebraic(
          "Small heads (d_k = d_v = d/h) that start equal, with equal W_i^O, get gradients that are equal "
          "bit for bit: small pieces do not make heads differ.",
          "a difference of exactly 0", found(of_small), of_small.difference == 0, OriginalSays::kOpposite),
      algebraic(
          "Heads of any other size that start equal, with equal W_i^O, get equal gradients, too (d_k = 5, "
          "d = 12).",
          "a difference of exactly 0", found(of_equal), of_equal.difference == 0, OriginalSays::kOpposite),
      algebraic("The gradients of equal heads are not 0: the heads do learn.", "above 0", found(of_equal),
                of_equal.size > 0),
      algebraic("Heads that start with different random numbers get different gradients.",
                "a difference above 0.001 of the largest gradient", found(of_unequal), differ(of_unequal),
                OriginalSays::kSame),
      algebraic("Equal gradients do not prove equal heads: with W^O = 0 unequal heads get equal gradients, "
                "zeros.",
                "gradients of exactly 0", fmt::format("largest gradient {:.2g}", of_silent.size),
                of_silent.size == 0),
      algebraic(fmt::format("Heads that start equal, with equal W_i^O, are still equal after {} updates.",
                            kUpdates),
                "a difference of their weights of exactly 0", fmt::format("largest difference {:.2g}", apart),
                apart == 0, OriginalSays::kOpposite)};
  const auto row = [](const char* heads, const PairGradient& g) {
    return std::vector<std::string>{heads, fmt::format("{:.3g}", g.size),
                                    fmt::format("{:.3g}", g.difference)};
  };
  claim.tables.push_back({"gradients of W^Q, W^K, W^V of two heads, d = 12",
                          {"heads", "largest", "largest difference"},
                          {row("different start, d_k = 12", of_full), row("equal start, d_k = 2", of_small),
                           row("equal start, d_k = 5", of_equal), row("different start, d_k = 5", of_unequal),
                           row("different start, d_k = 5, W^O = 0", of_silent)}});
  return claim;
}

}  // namespace mh::unique_heads
