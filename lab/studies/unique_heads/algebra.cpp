// 003: what makes heads unique? What follows from formulas. (003.5 is averaging_bound.cpp.)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "lab/studies/claim_words.h"
#include "lab/studies/lab.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/base/terminal_text.h"

namespace mh::unique_heads {
namespace {

using namespace lab;

constexpr int kModel = 14, kHeads = 3, kKey = 5, kValue = 4;
const HeadGeometry kPlain{.heads = kHeads, .d_key = kKey, .d_value = kValue, .biases = Biases::kNone};

constexpr const char* kProjections[] = {"w_q", "w_k", "w_v"};
/// d_k, of W^V d_v.
int size_in(const Layer& layer, const std::string& projection) {
  return projection == "w_v" ? layer.geometry().d_value : layer.geometry().d_key;
}

/// These heads of a matrix [d, h * size], in this order.
Matrix heads_of(const Matrix& w, int size, const std::vector<int>& heads) {
  std::vector<Matrix> parts;
  for (const int head : heads) parts.push_back(columns(w, head * size, (head + 1) * size));
  return beside(parts);
}

/// The layer gets these heads of `from`, in this order; their W_i^O too when asked.
void set_heads(Layer& layer, Layer& from, const std::vector<int>& heads, bool output) {
  for (const char* name : kProjections)
    layer.set(name, heads_of(from.parameter(name), size_in(from, name), heads));
  if (!output) return;
  const Matrix o = transposed(from.parameter("w_o"));
  layer.set("w_o", transposed(heads_of(o, from.geometry().d_value, heads)));
}

/// Head 1 becomes a copy of head 0.
void make_twins(Layer& layer, bool output) {
  std::vector<int> heads = {0, 0};
  for (int h = 2; h < layer.geometry().heads; ++h) heads.push_back(h);
  set_heads(layer, layer, heads, output);
}

/// mistake 1: the blocks of W^O stay where they are; 2: the copy keeps a W^V of its own.
Claim permuted(const AlgebraCase& a) {
  Claim claim = claim_without_figures("003.1");
  Random random(a.seed, 31);
  const Matrix x = random_matrix(9, kModel, random);
  Layer layer(kPlain, kModel, a.seed), copied(kPlain, kModel, a.seed);
  const Matrix before = layer.output(x), own_values = copied.parameter("w_v");
  set_heads(layer, layer, {2, 1, 0}, a.mistake != 1);
  const double difference = relative_difference(layer.output(x), before);
  decide(claim, difference <= 1e-6,
         fmt::format("heads 0 and 2 of {}: largest relative difference {:.2g}", kHeads, difference));
  set_heads(copied, copied, {0, 1, 0}, false);
  if (a.mistake == 2) copied.set("w_v", own_values);
  const Matrix heads = copied.heads(x);
  const double apart = largest_difference(columns(heads, 0, kValue), columns(heads, 2 * kValue, 3 * kValue));
  decide(claim, apart == 0, fmt::format("heads 0 and 2 of {}: largest difference {:.2g}", kHeads, apart));
  return claim;
}

/// Of the first head's W^Q, W^K and W^V, or of their gradients.
struct FirstHead {
  double largest = 0, difference = 0;  // from the second head's
};
FirstHead first_head(Layer& layer, Matrix (Layer::*numbers)(const std::string&)) {
  FirstHead found;
  for (const char* name : kProjections) {
    const int size = size_in(layer, name);
    const Matrix both = (layer.*numbers)(name), first = columns(both, 0, size);
    found.largest = std::max(found.largest, largest(first));
    found.difference = std::max(found.difference, largest_difference(first, columns(both, size, 2 * size)));
  }
  return found;
}

/// mistake 1: the full-size heads start equal; 2, 3, 7: the twin keeps a W_i^O of its own; 4: W^O is 0;
/// 5: the unequal heads are equal; 6: W^O is small, not 0.
Claim equal_gradients(const AlgebraCase& a) {
  constexpr int kInputs = 12, kUpdates = 20;  // d
  Claim claim = claim_without_figures("003.2");
  Random random(a.seed, 32);
  const Matrix x = random_matrix(8, kInputs, random), towards = random_matrix(8, kInputs, random);
  const auto layer_of = [&](int heads, int size) {
    return Layer({.heads = heads, .d_key = size, .biases = Biases::kNone}, kInputs, a.seed);
  };
  Layer full = layer_of(3, kInputs), small = layer_of(6, kInputs / 6), equal = layer_of(3, 5),
        moving = layer_of(3, 5), unequal = layer_of(3, 5), silent = layer_of(3, 5);
  if (a.mistake == 1) make_twins(full, true);
  make_twins(small, a.mistake != 2);
  make_twins(equal, a.mistake != 3);
  if (a.mistake == 4) equal.set("w_o", Matrix(15, kInputs));
  if (a.mistake == 5) make_twins(unequal, true);
  silent.set("w_o", scaled(silent.parameter("w_o"), a.mistake == 6 ? 1e-3 : 0));
  make_twins(moving, a.mistake != 7);
  const auto pass_back = [&](Layer& layer) {
    layer.clear_gradients();
    layer.output_gradients(x, towards);
  };
  std::vector<FirstHead> gradients;  // in the order of the table's rows
  for (Layer* layer : {&full, &small, &equal, &unequal, &silent}) {
    pass_back(*layer);
    const FirstHead& found = gradients.emplace_back(first_head(*layer, &Layer::gradient));
    auto& row = claim.tables[0].rows[gradients.size() - 1];
    row.insert(row.end(), {fmt::format("{:.3g}", found.largest), fmt::format("{:.3g}", found.difference)});
  }
  for (int update = 0; update < kUpdates; ++update) {
    pass_back(moving);
    for (const auto& [name, parameter] : moving.parameters())
      moving.set(name, sum(moving.parameter(name), moving.gradient(name), -0.01));
  }
  const double apart = first_head(moving, &Layer::parameter).difference;
  const auto add = [&](const FirstHead& g, bool right) {
    decide(claim, right,
           fmt::format("largest difference {:.2g}, largest gradient {:.2g}", g.difference, g.largest));
  };
  const auto differ = [](const FirstHead& g) { return g.difference > 1e-3 * g.largest; };
  add(gradients[0], differ(gradients[0]));
  add(gradients[1], gradients[1].difference == 0);
  add(gradients[2], gradients[2].difference == 0);
  add(gradients[2], gradients[2].largest > 0);
  add(gradients[3], differ(gradients[3]));
  decide(claim, gradients[4].largest == 0, fmt::format("largest gradient {:.2g}", gradients[4].largest));
  decide(claim, apart == 0, fmt::format("largest difference {:.2g}", apart));
  return claim;
}

/// How many of 64 numbers of a row change a head when they are changed: the fewest of 8 heads.
int fewest_numbers_read(const char* preset, uint64_t seed) {
  constexpr int kMany = 8, kNumbers = 64, kPart = kNumbers / kMany;
  Random random(seed, 33);
  const Matrix x = random_matrix(4, kNumbers, random);
  Layer layer(geometry_preset(preset, kMany, kNumbers), kNumbers, seed);
  const Matrix before = layer.heads(x);
  std::vector<int> read(kMany);
  for (int c = 0; c < kNumbers; ++c) {
    Matrix changed = x;
    for (int64_t t = 0; t < x.rows(); ++t) changed(t, c) += 1;
    const Matrix difference = sum(layer.heads(changed), before, -1);
    for (int h = 0; h < kMany; ++h)
      read[static_cast<size_t>(h)] += largest(columns(difference, h * kPart, (h + 1) * kPart)) > 0;
  }
  return *std::min_element(read.begin(), read.end());
}

/// mistake 1 to 6: the layer of that clause is the next one; 7: Tensor2Tensor's d_k is that of all heads
/// together; 8: the heads get slices.
Claim narrow_and_wide(const AlgebraCase& a) {
  constexpr int kWide = 512, kMany = 8;
  Claim claim = claim_without_figures("003.3");
  auto& rows = claim.tables[0].rows;  // of the layer and its preset
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& preset = rows[a.mistake == static_cast<int>(i) + 1 ? (i + 1) % rows.size() : i][1];
    Layer layer(geometry_preset(preset, kMany, kWide), kWide, a.seed);
    rows[i].push_back(grouped(layer.parameter_count()));
    decide(claim, rows[i][2] == next_clause(claim).asked, "counted: " + rows[i][2]);
  }
  Layer canonical(geometry_preset("tensor2tensor", kMany, kWide), kWide, a.seed);
  const int d_key = canonical.geometry().d_key * (a.mistake == 7 ? kMany : 1);
  decide(claim, d_key == kWide / kMany, fmt::format("d_k = {} of d = {}", d_key, kWide));
  const int fewest = fewest_numbers_read(a.mistake == 8 ? "bloem-narrow" : "tensor2tensor", a.seed);
  decide(claim, fewest == 64, fmt::format("at least {} of 64", fewest));
  return claim;
}

/// What the layer gives without head 1; its W_i^O goes to head 0 when asked.
Matrix without_head_1(Layer& layer, const Matrix& x, bool add_output, uint64_t seed) {
  HeadGeometry geometry = kPlain;
  geometry.heads = kHeads - 1;
  Layer smaller(geometry, kModel, seed);
  set_heads(smaller, layer, {0, 2}, true);
  Matrix kept = smaller.parameter("w_o");
  const Matrix o = layer.parameter("w_o");
  for (int r = 0; r < (add_output ? kValue : 0); ++r) {
    for (int c = 0; c < kModel; ++c) kept(r, c) += o(kValue + r, c);
  }
  smaller.set("w_o", kept);
  return smaller.output(x);
}

/// mistake 1: the twin's W_i^O is forgotten; 2: the unequal heads are equal.
Claim duplicates(const AlgebraCase& a) {
  Claim claim = claim_without_figures("003.6");
  Random random(a.seed, 36);
  const Matrix x = random_matrix(9, kModel, random);
  Layer twins(kPlain, kModel, a.seed), others(kPlain, kModel, a.seed);
  make_twins(twins, false);
  if (a.mistake == 2) make_twins(others, false);
  const double equal = relative_difference(without_head_1(twins, x, a.mistake != 1, a.seed), twins.output(x));
  decide(claim, equal <= 1e-6, fmt::format("largest relative difference {:.2g}", equal));
  const double unequal = relative_difference(without_head_1(others, x, true, a.seed), others.output(x));
  decide(claim, unequal > 0.01, fmt::format("largest relative difference {:.2f}", unequal));
  return claim;
}

/// Pairs of a row and a position; reached: the row depends on the position.
struct Pairs {
  int reached = 0, of = 0;

  void add(const Pairs& more) { reached += more.reached, of += more.of; }
  std::string text() const { return fmt::format("{} of {}", reached, of); }
};
struct NearAndFar {
  Pairs near, far;  // at most so far apart, or further
};

/// Of rows of the last of these layers, each with its residual; they depend on x_j where d(row i) / dx_j is not
/// exactly 0. window 0: none.
NearAndFar pairs_of(const Matrix& x, int window, int layers, int limit, uint64_t seed) {
  std::vector<std::unique_ptr<Layer>> stack;
  for (int l = 0; l < layers; ++l) {
    stack.push_back(std::make_unique<Layer>(HeadGeometry{.heads = 2, .biases = Biases::kNone},
                                            static_cast<int>(x.cols()), seed + static_cast<uint64_t>(l)));
  }
  const Mask mask = window == 0 ? Mask::none() : Mask::window(window, window);
  NearAndFar pairs;
  for (int64_t row = 0; row < x.rows(); ++row) {
    const Matrix by_position = transposed(stack_gradient(stack, x, row, mask));
    for (int64_t t = 0; t < x.rows(); ++t)
      (std::abs(row - t) <= limit ? pairs.near : pairs.far)
          .add({norm(columns(by_position, t, t + 1)) != 0, 1});
  }
  return pairs;
}

/// mistake 1: the layer has a window of 15 words; 2: one layer too many is expected; 3: one too few.
Claim path_length(const AlgebraCase& a) {
  constexpr int kPositions = 17, kNumbers = 14;  // T, d
  Claim claim = claim_without_figures("003.7");
  Random random(a.seed, 37);
  const Matrix x = random_matrix(kPositions, kNumbers, random);
  auto& rows = claim.tables[0].rows;
  const NearAndFar full = pairs_of(x, a.mistake == 1 ? 15 : 0, 1, kPositions, a.seed);
  rows.push_back({"none", "1", "all", full.near.text(), full.far.text()});
  NearAndFar all;
  for (const int window : {1, 2, 3, 5}) {
    for (const int layers : {1, 2, 3}) {
      const int reach = window * (layers + (a.mistake == 2) - (a.mistake == 3));
      const auto [near, far] = pairs_of(x, window, layers, reach, a.seed);
      all.near.add(near), all.far.add(far);
      rows.push_back(
          {std::to_string(window), std::to_string(layers), std::to_string(reach), near.text(), far.text()});
    }
  }
  decide(claim, full.near.reached == full.near.of, "not 0 for " + full.near.text() + " pairs");
  decide(claim, all.near.reached == all.near.of, "not 0 for " + all.near.text() + " pairs");
  decide(claim, all.far.reached == 0, "not 0 for " + all.far.text() + " pairs");
  return claim;
}

constexpr AlgebraCheck kChecks[] = {{"003.1", permuted},        {"003.2", equal_gradients},
                                    {"003.3", narrow_and_wide}, {"003.5", averaging_bound},
                                    {"003.6", duplicates},      {"003.7", path_length}};

}  // namespace

std::span<const AlgebraCheck> algebra() {
  return kChecks;
}

}  // namespace mh::unique_heads
