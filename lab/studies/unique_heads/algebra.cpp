// 003: what makes heads unique? What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/unique_heads/algebra.h"
#include "lab/studies/unique_heads/claims.h"
#include "multihead/base/terminal_text.h"

namespace mh::unique_heads {

void copy_head(lab::Layer& layer, int from, int to, bool output) {
  const int d_key = layer.geometry().d_key, d_value = layer.geometry().d_value;
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    lab::Matrix w = layer.parameter(name);
    const int size = name[2] == 'v' ? d_value : d_key;
    for (int64_t r = 0; r < w.rows(); ++r) {
      for (int c = 0; c < size; ++c) w(r, to * size + c) = w(r, from * size + c);
    }
    layer.set(name, w);
  }
  if (!output) return;
  lab::Matrix o = layer.parameter("w_o");
  for (int r = 0; r < d_value; ++r) {
    for (int64_t c = 0; c < o.cols(); ++c) o(to * d_value + r, c) = o(from * d_value + r, c);
  }
  layer.set("w_o", o);
}

namespace {

using namespace lab;

constexpr int kModel = 14, kHeads = 3, kKey = 5, kValue = 4;
const HeadGeometry kPlain{.heads = kHeads, .d_key = kKey, .d_value = kValue, .biases = Biases::kNone};

/// mistake 1: the blocks of W^O stay where they are; 2: the copy keeps a W^V of its own.
Claim permuted(const AlgebraCase& a) {
  Claim claim{.id = "003.1",
              .statement = "All heads get the same input; what differs are their weights and nothing else.",
              .original_words =
                  "\"The reason each head is different is because they each learn a different set of weight "
                  "matrices ... the input to each attention head is the same.\""};
  Random random(a.seed, 31);
  const Matrix x = random_matrix(9, kModel, random);
  Layer layer(kPlain, kModel, a.seed), copied(kPlain, kModel, a.seed);
  const Matrix before = layer.output(x), own_values = copied.parameter("w_v");
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    Matrix w = layer.parameter(name);
    const int size = name[2] == 'v' ? kValue : kKey;
    for (int64_t r = 0; r < w.rows(); ++r) std::swap_ranges(&w(r, 0), &w(r, 0) + size, &w(r, 2 * size));
    layer.set(name, w);
  }
  if (a.mistake != 1) {
    Matrix o = layer.parameter("w_o");
    std::swap_ranges(&o(0, 0), &o(0, 0) + kValue * kModel, &o(2 * kValue, 0));
    layer.set("w_o", o);
  }
  const double difference = largest_difference(layer.output(x), before) / largest(before);
  copy_head(copied, 0, 2, false);
  if (a.mistake == 2) copied.set("w_v", own_values);
  const Matrix heads = copied.heads(x);
  const double apart = largest_difference(columns(heads, 0, kValue), columns(heads, 2 * kValue, 3 * kValue));
  claim.clauses = {
      algebraic("Exchange the weights of two heads, their W_i^O too, and the layer's output stays as it is.",
                "relative difference at most 1e-6",
                fmt::format("heads 0 and 2 of {}: largest relative difference {:.2g}", kHeads, difference),
                difference <= 1e-6, OriginalSays::kSame),
      algebraic("Give two heads the same W^Q, W^K and W^V, and their outputs are the same.",
                "a difference of exactly 0",
                fmt::format("heads 0 and 2 of {}: largest difference {:.2g}", kHeads, apart), apart == 0,
                OriginalSays::kSame)};
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

/// mistake 1 to 6: the layer of that clause is another one; 7: Tensor2Tensor's d_k is that of all heads
/// together; 8: the heads get slices.
Claim narrow_and_wide(const AlgebraCase& a) {
  constexpr int kWide = 512, kMany = 8;
  Claim claim{
      .id = "003.3",
      .statement =
          "\"Narrow\" and \"wide\" mean several things, which cost from 12,288 to 8,388,608 parameters (W^Q, "
          "W^K, "
          "W^V and W^O at d = 512, h = 8).",
      .original_words =
          "\"narrow self-attention in which the original input is split into smaller chunks ... wide "
          "self-attention in which the whole input gets fed into each head\"; \"the original transformer "
          "code "
          "in Tensor2Tensor, and also BERT's code, uses attention the way I described (which is considered "
          "'wide self-attention')\".",
      .original_remark =
          "Whether a head reads the whole row, and whether its d_k is d or d/h, are two questions; "
          "\"wide\" was used for both."};
  struct Row {
    const char* name;
    const char* preset;
    int64_t expected;
    const char* mistaken;
  };
  Table table{"counted in layers made here", {"layer", "preset", "parameters"}, {}};
  int number = 0;
  for (const Row& row :
       {Row{"Bloem's narrow heads with one s x s projection for all", "bloem-narrow-shared", 12'288,
            "bloem-narrow"},
        Row{"Bloem's narrow heads with an s x s projection each", "bloem-narrow", 98'304,
            "bloem-narrow-shared"},
        Row{"Bloem's narrow heads with W^O", "bloem-narrow-output", 98'304 + 262'144, "bloem-narrow"},
        Row{"Tensor2Tensor's canonical heads (d_k = d/h)", "tensor2tensor", 1'048'576, "bloem-wide"},
        Row{"Bloem's wide heads (d_k = d)", "bloem-wide", 8'388'608, "tensor2tensor"},
        Row{"heads of Bloem's fourth form (d x d, then slices)", "bloem-fourth", 786'432 + 98'304 + 262'144,
            "bloem-wide"}}) {
    Layer layer(geometry_preset(a.mistake == ++number ? row.mistaken : row.preset, kMany, kWide), kWide,
                a.seed);
    const int64_t count = layer.parameter_count();
    const std::string expected = grouped(row.expected), counted = grouped(count);
    table.rows.push_back({row.name, row.preset, counted});
    claim.clauses.push_back(algebraic(fmt::format("A layer of {} has {} parameters.", row.name, expected),
                                      expected, "counted: " + counted, count == row.expected));
  }
  Layer canonical(geometry_preset("tensor2tensor", kMany, kWide), kWide, a.seed);
  const int d_key = canonical.geometry().d_key * (a.mistake == 7 ? kMany : 1);
  claim.clauses.push_back(
      algebraic("Tensor2Tensor's heads are not wide heads in Bloem's sense: their d_k is d/h, not d.",
                fmt::format("d_k = {}", kWide / kMany), fmt::format("d_k = {} of d = {}", d_key, kWide),
                d_key == kWide / kMany, OriginalSays::kOpposite));
  const int fewest = fewest_numbers_read(a.mistake == 8 ? "bloem-narrow" : "tensor2tensor", a.seed);
  claim.clauses.push_back(algebraic(
      "Tensor2Tensor's heads are wide in the sense of the answer: each of them reads the whole row.",
      "each of 8 heads depends on 64 of 64 numbers of a row", fmt::format("at least {} of 64", fewest),
      fewest == 64, OriginalSays::kSame));
  claim.tables.push_back(std::move(table));
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

/// mistake 1: the twin's W_i^O is forgotten; 2: the unequal heads are equal.
Claim duplicates(const AlgebraCase& a) {
  Claim claim{
      .id = "003.6",
      .statement = "A layer with two equal heads computes what a layer with one head less can compute.",
      .original_words =
          "\"If a model has n features, but 2 of them are the same, then the model effectively has n-1 "
          "features.\""};
  Random random(a.seed, 36);
  const Matrix x = random_matrix(9, kModel, random);
  Layer twins(kPlain, kModel, a.seed), others(kPlain, kModel, a.seed);
  copy_head(twins, 0, 1, false);
  if (a.mistake == 2) copy_head(others, 0, 1, false);
  const Matrix with_twin = twins.output(x), with_other = others.output(x);
  const double equal =
      largest_difference(without_head_1(twins, x, a.mistake != 1, a.seed), with_twin) / largest(with_twin);
  const double unequal =
      largest_difference(without_head_1(others, x, true, a.seed), with_other) / largest(with_other);
  claim.clauses = {
      algebraic("Of two equal heads one can be removed by adding its W_i^O to that of the other.",
                "relative difference at most 1e-6", fmt::format("largest relative difference {:.2g}", equal),
                equal <= 1e-6, OriginalSays::kSame),
      algebraic("Of two unequal heads none can be removed in this way.", "relative difference above 0.01",
                fmt::format("largest relative difference {:.2f}", unequal), unequal > 0.01,
                OriginalSays::kSame)};
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
