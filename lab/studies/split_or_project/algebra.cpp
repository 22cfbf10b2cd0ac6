// 000: is the input split or duplicated? What follows from the formulas.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/claim_words.h"
#include "lab/studies/lab.h"
#include "lab/studies/split_or_project/claims.h"

namespace mh::split_or_project {
namespace {

using namespace lab;

constexpr double kRounding = 1e-5;  // float32 beside double, relative
constexpr int kModel = 24, kHeads = 4, kSize = kModel / kHeads;
constexpr const char* kProjections[] = {"w_q", "w_k", "w_v"};

HeadGeometry plain(int heads, HeadInput input = {}) {
  return {.heads = heads, .input = std::move(input), .biases = Biases::kNone};
}

/// How strongly a head depends on each number of a row: the largest of the derivatives of Att_head by it, 0 where the head
/// does not read it.
std::vector<double> derivatives(Layer& layer, int head, const Matrix& x, Random& random, bool seed_all) {
  Matrix seed(x.rows(), kModel);
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t c = 0; c < kModel; ++c) {
      if (seed_all || c / kSize == head) seed(t, c) = random.normal();
    }
  }
  const Matrix gradient = layer.input_gradient(x, seed);
  std::vector<double> by_number;
  for (int64_t c = 0; c < kModel; ++c) by_number.push_back(largest(columns(gradient, c, c + 1)));
  return by_number;
}

/// mistake 1: the layer cuts its input; 2: the gradient of all heads is taken for that of one.
Claim receptive_field(const AlgebraCase& a) {
  Claim claim = claim_without_figures("000.1");
  Random random(a.seed, 1);
  const Matrix x = random_matrix(5, kModel, random);
  Layer canonical(plain(kHeads, a.mistake == 1 ? HeadInput::slices() : HeadInput{}), kModel, a.seed),
      sliced(plain(kHeads, HeadInput::slices()), kModel, a.seed);
  // Of each kind of heads: how many numbers a head reads, and for the picture how strongly, of the strongest.
  const auto count = [&](Layer& layer, const char* name, bool seed_all) {
    std::vector<int> counts;
    Series series{.name = name};
    double most = 0;
    for (int h = 0; h < kHeads; ++h) {
      const std::vector<double>& row = series.lines.emplace_back(derivatives(layer, h, x, random, seed_all));
      counts.push_back(kModel - static_cast<int>(std::count(row.begin(), row.end(), 0)));
      most = std::max(most, *std::max_element(row.begin(), row.end()));
    }
    for (auto& row : series.lines) {
      for (double& derivative : row) derivative = std::round(1000 * derivative / most) / 1000;
    }
    claim.plots[0].series.push_back(std::move(series));
    return counts;
  };
  const std::vector<int> whole = count(canonical, "copied: each head projects the whole embedding", false),
                         part = count(sliced, "cut: each head gets a part of the embedding", a.mistake == 2);
  for (int h = 0; h < kHeads; ++h)
    claim.tables[0].rows.push_back({std::to_string(h), std::to_string(whole[h]), std::to_string(part[h])});
  const auto decide_counts = [&](const std::vector<int>& counts, int wanted) {
    decide(claim, std::count(counts.begin(), counts.end(), wanted) == kHeads,
           fmt::format("the heads' outputs have a derivative other than exactly 0 for {} of {} numbers",
                       fmt::join(counts, ", "), kModel));
  };
  decide_counts(whole, kModel);
  decide_counts(part, kSize);
  return claim;
}

/// Turns each slice of a row by itself.
Matrix rotation_within_slices(Random& random) {
  Matrix whole(kModel, kModel);
  for (int h = 0; h < kHeads; ++h) {
    const Matrix part = random_rotation(kSize, random);
    for (int r = 0; r < kSize; ++r) std::copy_n(&part(r, 0), kSize, &whole(h * kSize + r, h * kSize));
  }
  return whole;
}

/// mistake 1: the weights are turned by R instead of its inverse; 2: R turns each slice by itself.
Claim basis(const AlgebraCase& a) {
  Claim claim = claim_without_figures("000.2");
  Random random(a.seed, 2);
  const Matrix x = random_matrix(7, kModel, random), rotation = random_rotation(kModel, random);
  const Matrix inverse = a.mistake == 1 ? rotation : transposed(rotation);
  Layer before(plain(kHeads), kModel, a.seed), after(plain(kHeads), kModel, a.seed);
  for (const char* name : kProjections) after.set(name, product(inverse, before.parameter(name)));
  const Matrix expected = before.heads(x);
  const double canonical = relative_difference(after.heads(product(x, rotation)), expected);
  decide(claim, canonical <= kRounding, fmt::format("largest relative difference {:.2g}", canonical));

  Layer sliced(plain(kHeads, HeadInput::slices()), kModel, a.seed);
  const Matrix w = transposed(sliced.parameter("w_q"));  // [s, d]: the columns of head i are its slice's
  const Matrix turn = transposed(a.mistake == 2 ? rotation_within_slices(random) : rotation);
  double least = 1;
  for (int64_t begin = 0; begin < kModel; begin += kSize) {
    const auto slice = [&](const Matrix& of) { return columns(of, begin, begin + kSize); };
    const Matrix turned = product_transposed(slice(w), slice(turn));  // the head's whole W_i^Q, transposed
    const double inside = norm(slice(turned)) / norm(turned);
    least = std::min(least, std::sqrt(std::max(0.0, 1 - inside * inside)));
  }
  decide(claim, least > 0.5,
         fmt::format("at least {:.0f} % of each; random directions would give sqrt(1 - 1/h) = {:.0f} %",
                     100 * least, 100 * std::sqrt(1 - 1.0 / kHeads)));
  return claim;
}

/// mistake 1: the formula beside the layer forgets the scale; 2: d_k is taken for d_v.
Claim output_shape(const AlgebraCase& a) {
  Claim claim = claim_without_figures("000.4");
  double worst = 0;
  int shapes = 0, shaped = 0, square = 0;
  for (const HeadSizes s :
       {HeadSizes{4, 24, 6, 6}, HeadSizes{3, 10, 5, 7}, HeadSizes{3, 7, 1, 2}, HeadSizes{5, 12, 16, 3}}) {
    Random random(a.seed, 4);
    const auto heads = random_heads(s, random);
    Layer layer({.heads = s.heads, .d_key = s.d_key, .d_value = s.d_value, .biases = Biases::kNone},
                s.d_model, a.seed);
    const Matrix w_o = layer.parameter("w_o");
    ++shapes;
    shaped +=
        w_o.rows() == int64_t{s.heads} * (a.mistake == 2 ? s.d_key : s.d_value) && w_o.cols() == s.d_model;
    square += w_o.rows() == w_o.cols();
    std::vector<Matrix> q, k, v, o;
    for (const Head& head : heads) {
      q.push_back(head.q), k.push_back(head.k), v.push_back(head.v), o.push_back(transposed(head.o));
    }
    layer.set("w_q", beside(q)), layer.set("w_k", beside(k)), layer.set("w_v", beside(v));
    layer.set("w_o", transposed(beside(o)));
    const Matrix x = random_matrix(6, s.d_model, random);
    const Matrix expected = multi_head(x, heads, a.mistake == 1 ? 1 : 1 / std::sqrt(s.d_key));
    const double difference = relative_difference(layer.output(x), expected);
    worst = std::max(worst, difference);
    claim.tables[0].rows.push_back({std::to_string(s.d_model), std::to_string(s.heads),
                                    std::to_string(s.d_key), std::to_string(s.d_value),
                                    fmt::format("[{}, {}]", w_o.rows(), w_o.cols()),
                                    fmt::format("{:.2g}", difference)});
  }
  decide(claim, worst <= kRounding, fmt::format("largest relative difference {:.2g}", worst));
  decide(claim, shaped == shapes,
         fmt::format("in {} of {} layers; {} of them square", shaped, shapes, square));
  return claim;
}

/// mistake 1: the packed product is cut into heads the wrong way round, number c of head i at c h + i;
/// 2: the layer that should cut its input gets whole rows.
Claim split_after_projecting(const AlgebraCase& a) {
  Claim claim = claim_without_figures("000.5");
  Random random(a.seed, 5);
  const Matrix x = random_matrix(6, kModel, random);
  Layer packed(plain(kHeads), kModel, a.seed);
  const Matrix all = packed.heads(x);
  // [d, s]: number (r, c) is that of W in row r and in this column.
  const auto chosen = [&](const char* name, const auto& column) {
    const Matrix w = packed.parameter(name);
    Matrix part(kModel, kSize);
    for (int r = 0; r < kModel; ++r) {
      for (int c = 0; c < kSize; ++c) part(r, c) = w(r, column(r, c));
    }
    return part;
  };
  double same = 0;
  for (int h = 0; h < kHeads; ++h) {
    Layer alone({.heads = 1, .d_key = kSize, .biases = Biases::kNone}, kModel, a.seed);
    const auto of_head = [&](int, int c) { return a.mistake == 1 ? c * kHeads + h : h * kSize + c; };
    for (const char* name : kProjections) alone.set(name, chosen(name, of_head));
    same = std::max(same, largest_difference(alone.heads(x), columns(all, h * kSize, (h + 1) * kSize)));
  }
  same /= largest(all);
  decide(claim, same <= kRounding, fmt::format("{:.2g} of the largest output", same));

  Layer split(plain(kHeads, a.mistake == 2 ? HeadInput{} : HeadInput::slices()), kModel, a.seed);
  const auto of_slice = [](int r, int c) { return r / kSize * kSize + c; };
  for (const char* name : kProjections)  // the very same numbers, as far as a slice can hold them
    split.set(name, a.mistake == 2 ? packed.parameter(name) : chosen(name, of_slice));
  const double other = norm(sum(split.heads(x), all, -1)) / norm(all);
  decide(claim, other > 0.1, fmt::format("{:.2f} of the norm away", other));
  return claim;
}

constexpr AlgebraCheck kChecks[] = {{"000.1", receptive_field},
                                    {"000.2", basis},
                                    {"000.3", cost},
                                    {"000.4", output_shape},
                                    {"000.5", split_after_projecting}};

}  // namespace

std::span<const AlgebraCheck> algebra() {
  return kChecks;
}

}  // namespace mh::split_or_project
