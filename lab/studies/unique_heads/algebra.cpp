// 003: what makes heads unique? What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/unique_heads/claims.h"

namespace mh::unique_heads {
namespace {

using namespace lab;

constexpr int kModel = 14, kHeads = 3, kKey = 5, kValue = 4;
const HeadGeometry kPlain{.heads = kHeads, .d_key = kKey, .d_value = kValue, .biases = Biases::kNone};

/// Numbers of head `to` become those of head `from` (a copy); of W_i^O too when asked.
void copy_head(Layer& layer, int from, int to, bool output) {
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    Matrix w = layer.parameter(name);
    const int size = name[2] == 'v' ? kValue : kKey;
    for (int64_t r = 0; r < w.rows(); ++r) {
      for (int c = 0; c < size; ++c) w(r, to * size + c) = w(r, from * size + c);
    }
    layer.set(name, w);
  }
  if (!output) return;
  Matrix o = layer.parameter("w_o");
  for (int r = 0; r < kValue; ++r) {
    for (int64_t c = 0; c < o.cols(); ++c) o(to * kValue + r, c) = o(from * kValue + r, c);
  }
  layer.set("w_o", o);
}

/// mistaken: the blocks of W^O stay where they are.
Claim permuted(const AlgebraCase& a) {
  Claim claim{.id = "003.1",
              .statement =
                  "Same input, different weights: exchange two heads with their W_i^O and the layer's output "
                  "stays as it is.",
              .original_words =
                  "\"The reason each head is different is because they each learn a different set of weight "
                  "matrices ... the input to each attention head is the same.\"",
              .original_statement = OriginalStatement::kRight,
              .tolerance = "relative difference at most 1e-6"};
  Random random(a.seed, 31);
  const Matrix x = random_matrix(9, kModel, random);
  Layer layer(kPlain, kModel, a.seed);
  const Matrix before = layer.output(x);
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    Matrix w = layer.parameter(name);
    const int size = name[2] == 'v' ? kValue : kKey;
    for (int64_t r = 0; r < w.rows(); ++r) std::swap_ranges(&w(r, 0), &w(r, 0) + size, &w(r, 2 * size));
    layer.set(name, w);
  }
  if (!a.mistaken) {
    Matrix o = layer.parameter("w_o");
    std::swap_ranges(&o(0, 0), &o(0, 0) + kValue * kModel, &o(2 * kValue, 0));
    layer.set("w_o", o);
  }
  const double difference = largest_difference(layer.output(x), before) / largest(before);
  claim.measured =
      fmt::format("heads 0 and 2 of {} exchanged: largest relative difference {:.1e}", kHeads, difference);
  claim.verdict = difference <= 1e-6 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

struct HeadGradient {
  double size, difference;  // of the first head's; from the second head's
};
HeadGradient gradients_of_pair(Layer& layer, const Matrix& x, const Matrix& seed) {
  layer.clear_gradients();
  layer.output_gradients(x, seed);
  HeadGradient found{0, 0};
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    const int size = name[2] == 'v' ? kValue : kKey;
    const Matrix g = layer.gradient(name);
    const Matrix first = columns(g, 0, size);
    found.size = std::max(found.size, largest(first));
    found.difference = std::max(found.difference, largest_difference(first, columns(g, size, 2 * size)));
  }
  return found;
}

/// mistaken: the twin keeps a W_i^O of its own.
Claim equal_gradients(const AlgebraCase& a) {
  Claim claim{.id = "003.2",
              .statement =
                  "Equal heads with equal W_i^O receive equal gradients, so they stay equal; random unequal "
                  "ones do not. The converse fails: with W^O = 0 unequal heads get equal gradients, zeros.",
              .original_words =
                  "\"Nothing really prevents the weights from being different ... gradient descent learns to "
                  "do that.\" What prevents it is an equal start.",
              .original_statement = OriginalStatement::kHalfRight,
              .tolerance = "equal heads: bit for bit; unequal ones: different; W^O = 0: all exactly 0"};
  Random random(a.seed, 32);
  const Matrix x = random_matrix(8, kModel, random), seed = random_matrix(8, kModel, random);
  Layer equal(kPlain, kModel, a.seed), unequal(kPlain, kModel, a.seed), silent(kPlain, kModel, a.seed);
  copy_head(equal, 0, 1, !a.mistaken);
  silent.set("w_o", Matrix(int64_t{kHeads} * kValue, kModel));
  const HeadGradient twins = gradients_of_pair(equal, x, seed), others = gradients_of_pair(unequal, x, seed),
                     none = gradients_of_pair(silent, x, seed);
  claim.tables.push_back(
      {"gradients of W^Q, W^K, W^V of two heads",
       {"heads", "largest", "largest difference"},
       {{"equal, equal W_i^O", fmt::format("{:.3g}", twins.size), fmt::format("{:.3g}", twins.difference)},
        {"unequal", fmt::format("{:.3g}", others.size), fmt::format("{:.3g}", others.difference)},
        {"unequal, W^O = 0", fmt::format("{:.3g}", none.size), fmt::format("{:.3g}", none.difference)}}});
  claim.measured = fmt::format(
      "equal heads: gradients {}; unequal heads: {:.2g} apart where the largest is {:.2g}; "
      "W^O = 0: largest {}",
      twins.difference == 0 ? "bit for bit the same" : fmt::format("{:.2g} apart", twins.difference),
      others.difference, others.size, none.size);
  const bool right =
      twins.difference == 0 && twins.size > 0 && others.difference > 1e-3 * others.size && none.size == 0;
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: all heads share one projection where each should have its own.
Claim narrow_and_wide(const AlgebraCase& a) {
  constexpr int kWide = 512, kMany = 8;
  Claim claim{
      .id = "003.3",
      .statement =
          "\"Narrow\" and \"wide\" mean several things: parameters of W^Q, W^K, W^V and W^O at d = 512, "
          "h = 8.",
      .original_words =
          "\"narrow self-attention in which the original input is split into smaller chunks ... wide "
          "self-attention in which the whole input gets fed into each head\"; Tensor2Tensor and BERT were "
          "called wide there, but their d_k is d/h, not d.",
      .original_statement = OriginalStatement::kHalfRight,
      .tolerance =
          "the counts of layers made here: 12,288; 98,304; with W^O 262,144 more; 1,048,576; 8,388,608"};
  struct Row {
    const char* name;
    const char* preset;
    int64_t expected;
  };
  Table table{"", {"layer", "preset", "parameters"}, {}};
  bool right = true;
  std::string counts;
  for (const Row& row :
       {Row{"Bloem narrow, one s x s for all heads", "bloem-narrow-shared", 12'288},
        Row{"Bloem narrow, an s x s a head", "bloem-narrow", 98'304},
        Row{"the same and W^O", "bloem-narrow-output", 98'304 + 262'144},
        Row{"canonical, no biases", "tensor2tensor", 1'048'576},
        Row{"Bloem wide, d_k = d", "bloem-wide", 8'388'608},
        Row{"Bloem's fourth: d x d, then slices", "bloem-fourth", 786'432 + 98'304 + 262'144}}) {
    const char* preset = a.mistaken && row.expected == 98'304 ? "bloem-narrow-shared" : row.preset;
    Layer layer(geometry_preset(preset, kMany, kWide), kWide, a.seed);
    right = right && layer.parameter_count() == row.expected;
    table.rows.push_back({row.name, row.preset, std::to_string(layer.parameter_count())});
    counts += (counts.empty() ? "" : ", ") + table.rows.back()[2];
  }
  claim.measured = "counted in layers made here: " + counts;
  claim.tables.push_back(std::move(table));
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// Head 1 gone; its W_i^O goes to head 0 when asked.
Matrix without_head_1(Layer& layer, const Matrix& x, bool add_output, uint64_t seed) {
  Layer smaller({.heads = kHeads - 1, .d_key = kKey, .d_value = kValue, .biases = Biases::kNone}, kModel,
                seed);
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    const int size = name[2] == 'v' ? kValue : kKey;
    const Matrix w = layer.parameter(name);
    smaller.set(name, beside({columns(w, 0, size), columns(w, 2 * size, 3 * size)}));
  }
  const Matrix o = layer.parameter("w_o");
  Matrix kept(int64_t{kHeads - 1} * kValue, kModel);
  for (int r = 0; r < kValue; ++r) {
    for (int c = 0; c < kModel; ++c) {
      kept(r, c) = o(r, c) + (add_output ? o(kValue + r, c) : 0);
      kept(kValue + r, c) = o(2 * kValue + r, c);
    }
  }
  smaller.set("w_o", kept);
  return smaller.output(x);
}

/// mistaken: the twin's W_i^O is forgotten.
Claim duplicates(const AlgebraCase& a) {
  Claim claim{
      .id = "003.6",
      .statement =
          "Of two equal heads one can be removed by adding its W_i^O to its twin's; of two unequal "
          "ones not: n heads of which two are equal are n - 1.",
      .original_words =
          "\"If a model has n features, but 2 of them are the same, then the model effectively has n-1 "
          "features.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "equal heads: relative difference at most 1e-6; unequal: above 0.01"};
  Random random(a.seed, 36);
  const Matrix x = random_matrix(9, kModel, random);
  Layer twins(kPlain, kModel, a.seed), others(kPlain, kModel, a.seed);
  copy_head(twins, 0, 1, false);
  const Matrix with_twin = twins.output(x), with_other = others.output(x);
  const double equal =
      largest_difference(without_head_1(twins, x, !a.mistaken, a.seed), with_twin) / largest(with_twin);
  const double unequal =
      largest_difference(without_head_1(others, x, true, a.seed), with_other) / largest(with_other);
  claim.measured =
      fmt::format("removed an equal head: {:.1e} of the output; an unequal one: {:.2f}", equal, unequal);
  claim.verdict = equal <= 1e-6 && unequal > 0.01 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: one layer too few is counted.
Claim path_length(const AlgebraCase& a) {
  constexpr int kTokens = 17, kRow = 8;
  Claim claim{
      .id = "003.7",
      .statement =
          "One layer of full attention relates any two positions; with a window of w words to either "
          "side it takes ceil(distance / w) layers.",
      .original_words =
          "\"In the Transformer this is reduced to a constant number of operations, albeit at the cost "
          "of reduced effective resolution\" (from the paper).",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "dy_8/dx_j is exactly 0 beyond layers times window, and not 0 within"};
  Random random(a.seed, 37);
  const Matrix x = random_matrix(kTokens, kModel, random);
  Table table{"positions that row 8 of 17 depends on", {"window", "layers", "from", "to", "formula"}, {}};
  bool right = true;
  for (const auto& [window, layers] :
       {std::pair(0, 1), std::pair(2, 1), std::pair(2, 2), std::pair(2, 3), std::pair(3, 2)}) {
    std::vector<std::unique_ptr<Layer>> stack;
    for (int l = 0; l < layers; ++l)
      stack.push_back(std::make_unique<Layer>(kPlain, kModel, a.seed + static_cast<uint64_t>(l)));
    const Matrix gradient =
        stack_gradient(stack, x, kRow, window == 0 ? Mask::none() : Mask::window(window, window));
    int from = kTokens, to = -1;
    for (int t = 0; t < kTokens; ++t) {
      bool any = false;
      for (int c = 0; c < kModel; ++c) any = any || gradient(t, c) != 0;
      if (any) from = std::min(from, t), to = t;
    }
    const int reach = window == 0 ? kTokens : window * (layers - a.mistaken);
    const int low = std::max(0, kRow - reach), high = std::min(kTokens - 1, kRow + reach);
    right = right && from == low && to == high;
    table.rows.push_back({window == 0 ? "none" : std::to_string(window), std::to_string(layers),
                          std::to_string(from), std::to_string(to), fmt::format("{} ... {}", low, high)});
  }
  claim.measured =
      fmt::format("the Jacobian's zeros lie where the formula says for {} stacks", table.rows.size());
  if (!right) claim.measured = "the Jacobian's zeros lie elsewhere than the formula says";
  claim.tables.push_back(std::move(table));
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

constexpr AlgebraCheck kChecks[] = {{"003.1", permuted},
                                    {"003.2", equal_gradients},
                                    {"003.3", narrow_and_wide},
                                    {"003.6", duplicates},
                                    {"003.7", path_length}};

}  // namespace

std::span<const AlgebraCheck> algebra() {
  return kChecks;
}

}  // namespace mh::unique_heads
