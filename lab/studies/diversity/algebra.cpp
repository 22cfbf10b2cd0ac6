// 001: diverse heads. What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/studies/diversity/algebra.h"
#include "lab/studies/diversity/claims.h"
#include "lab/studies/lab.h"

namespace mh::diversity {
namespace {

using namespace lab;

constexpr int kModel = 24, kHeads = 4, kSize = 6;

double deviation(const Matrix& a) {
  return norm(a) / std::sqrt(static_cast<double>(a.size()));
}

struct Start {
  double deviation, similarity,
      gradients;     // of w_q; cosine of V of heads 0 and 1; difference of their gradients
  double asymmetry;  // largest |s_ij - s_ji| of head 0, as a part of the largest score
  bool symmetric() const { return asymmetry <= 1e-6; }
};
Start start_of(HeadInitialisation initialisation, uint64_t seed) {
  Random random(seed, 12);
  const Matrix x = random_matrix(9, kModel, random), towards = random_matrix(9, kModel, random);
  Layer layer({.heads = kHeads, .biases = Biases::kNone, .initialisation = initialisation}, kModel, seed);
  layer.output_gradients(x, towards);
  Start start{deviation(layer.parameter("w_q")), 0, 0, 0};
  const Matrix v = product(x, layer.parameter("w_v"));
  start.similarity = cosine(columns(v, 0, kSize), columns(v, kSize, 2 * kSize));
  for (const char* name : {"w_q", "w_k", "w_v"}) {
    const Matrix g = layer.gradient(name);
    start.gradients =
        std::max(start.gradients, largest_difference(columns(g, 0, kSize), columns(g, kSize, 2 * kSize)));
  }
  const Head head{
      columns(layer.parameter("w_q"), 0, kSize), columns(layer.parameter("w_k"), 0, kSize), {}, {}};
  const Matrix s = scores(x, head);
  start.asymmetry = largest_difference(s, transposed(s)) / largest(s);
  return start;
}

/// mistake 1: noise of 1e-6 is added to the equal heads; 2: the orthogonal start makes equal heads; 3: the W_i^O
/// are equal, too; 4: there is no noise; 5: Xavier's bound forgets the fan out; 6: the packed start is
/// compared with the fans (d, d_k); 7: W^K starts as it likes; 8: the start that is no copy is one.
Claim initialisations(const AlgebraCase& a) {
  using enum HeadInitialisation;
  Claim claim{.id = "001.2",
              .statement =
                  "Heads that start with different numbers learn different things from the first step on; "
                  "heads that start equal, with equal W_i^O, do not."};
  struct Row {
    const char* name;
    HeadInitialisation initialisation;
    double fan_out;  // 0: not Xavier's
  };
  const auto unless = [&](int mistake, HeadInitialisation right, HeadInitialisation wrong) {
    return a.mistake == mistake ? wrong : right;
  };
  const Row rows[] = {{"Xavier, fans (d, d_k)", unless(8, kXavierHead, kCopiedKeys), kSize},
                      {"Xavier, fans (d, d)", kXavier, kModel},
                      {"Xavier, fans (d, 3 d)", kXavierPacked, 3 * kModel},
                      {"orthogonal by head", unless(2, kOrthogonal, kEqual), 0},
                      {"W^K a copy of W^Q", unless(7, kCopiedKeys, kXavier), 0},
                      {"all heads equal", unless(1, kEqual, kEqualWithNoise), 0},
                      {"equal but for W_i^O", unless(3, kEqualInput, kEqual), 0},
                      {"equal, noise of 1e-6", unless(4, kEqualWithNoise, kEqual), 0}};
  constexpr size_t kPerHead = 0, kWhole = 1, kPacked = 2, kCopy = 4, kTied = 5, kOtherOutput = 6, kNoise = 7;
  Table table{
      "heads 0 and 1 of 4 at the start, d = 24",
      {"initialisation", "deviation of W^Q", "cosine of V_0, V_1", "gradients differ by", "symmetric scores"},
      {}};
  std::vector<Start> starts;
  double least = 1, off = 0;
  int symmetric = 0;
  for (const Row& row : rows) {
    const Start& start = starts.emplace_back(start_of(row.initialisation, a.seed));
    const size_t at = starts.size() - 1;
    if (at <= kCopy) least = std::min(least, start.gradients);
    if (at != kCopy) symmetric += start.symmetric();
    if (row.fan_out > 0) {  // of a uniform number within sqrt(6 / fans)
      const double expected = std::sqrt(2.0 / (kModel + (a.mistake == 5 ? 0 : row.fan_out)));
      off = std::max(off, std::abs(start.deviation / expected - 1));
    }
    table.rows.push_back({row.name, fmt::format("{:.4f}", start.deviation),
                          fmt::format("{:.3f}", start.similarity), fmt::format("{:.2g}", start.gradients),
                          start.symmetric() ? "yes" : "no"});
  }
  const double smaller =
      starts[a.mistake == 6 ? kPerHead : kWhole].deviation / starts[kPacked].deviation / std::sqrt(2.0);
  const auto apart = [&](size_t at) {
    return fmt::format("largest difference of their gradients: {:.2g}", starts[at].gradients);
  };
  claim.clauses = {
      algebraic("Heads that start equal, their W_i^O too, get gradients that are equal bit for bit.",
                "differences of W^Q, W^K and W^V of exactly 0", apart(kTied), starts[kTied].gradients == 0),
      algebraic("Heads with random starts get different gradients.",
                fmt::format("a difference above 0 for each of {} starts", kCopy + 1),
                fmt::format("largest difference of their gradients: at least {:.2g}", least), least > 0),
      algebraic("A W_i^O of its own is enough to make equal heads differ.", "a difference above 0",
                apart(kOtherOutput), starts[kOtherOutput].gradients > 0),
      algebraic("Noise of 1e-6 is enough, too, to make equal heads differ.", "a difference above 0",
                apart(kNoise), starts[kNoise].gradients > 0),
      algebraic("Xavier's starts have the deviation sqrt(2 / (fan in + fan out)).",
                "at most 5 % off for fans (d, d_k), (d, d) and (d, 3 d)",
                fmt::format("at most {:.1f} % off", 100 * off), off <= 0.05),
      algebraic("One packed matrix [W^Q | W^K | W^V] starts smaller by sqrt(2) than three matrices.",
                "the ratio of the deviations is sqrt(2) to 5 %", fmt::format("{:.3f} times sqrt(2)", smaller),
                std::abs(smaller - 1) <= 0.05),
      algebraic("When W^K starts as a copy of W^Q, the scores are symmetric.",
                "|s_ij - s_ji| at most 1e-6 of the largest score",
                fmt::format("{:.2g} of the largest score", starts[kCopy].asymmetry),
                starts[kCopy].symmetric()),
      algebraic("No other start makes the scores symmetric.",
                fmt::format("not symmetric in {} layers", starts.size() - 1),
                fmt::format("symmetric in {} of {} layers", symmetric, starts.size() - 1), symmetric == 0)};
  claim.tables.push_back(std::move(table));
  return claim;
}

/// mistake 1: the rows are put one column further; 2: the rows outside the segments are 0 from the start.
Claim segments_are_canonical(const AlgebraCase& a) {
  Claim claim{.id = "001.4",
              .statement = "Heads that get a segment of the embedding are a special case of canonical heads.",
              .original_words =
                  "Deil: \"I wonder if it is beneficial to randomly sample embedding space and form segments "
                  "that can even overlap.\" The reply: \"it is in essence what mulihead is doing during "
                  "training\"."};
  Random random(a.seed, 14);
  const Matrix x = random_matrix(8, kModel, random);
  double worst = 0, least = 1;
  int cuts = 0;
  for (const HeadColumns& segments :
       {slice_columns(kHeads, kModel), permuted_slices(kHeads, kModel, a.seed),
        random_columns(kHeads, 9, kModel, a.seed), spread_segments(kHeads, 11, kModel)}) {
    Layer segmented(
        {.heads = kHeads, .d_key = kSize, .input = HeadInput::of_columns(segments), .biases = Biases::kNone},
        kModel, a.seed);
    Layer canonical({.heads = kHeads, .d_key = kSize, .biases = Biases::kNone}, kModel, a.seed + 1),
        restricted({.heads = kHeads, .d_key = kSize, .biases = Biases::kNone}, kModel, a.seed + 1);
    Matrix before = canonical.heads(x);
    for (const char* name : {"w_q", "w_k", "w_v"}) {
      const Matrix w = segmented.parameter(name),
                   free = canonical.parameter(name);  // w: [sum of segments, d_k]
      Matrix whole(kModel, int64_t{kHeads} * kSize), kept = whole;
      int64_t row = 0;
      for (int h = 0; h < kHeads; ++h) {
        for (const int32_t c : segments[static_cast<size_t>(h)]) {
          for (int k = 0; k < kSize; ++k) {
            whole((c + (a.mistake == 1)) % kModel, h * kSize + k) = w(row, k);
            kept(c, h * kSize + k) = free(c, h * kSize + k);
          }
          ++row;
        }
      }
      canonical.set(name, whole);
      restricted.set(name, kept);
    }
    const Matrix expected = segmented.heads(x);
    worst = std::max(worst, largest_difference(canonical.heads(x), expected) / largest(expected));
    const Matrix after = restricted.heads(x);
    if (a.mistake == 2) before = after;
    least = std::min(least, norm(sum(after, before, -1)) / norm(before));
    ++cuts;
  }
  const std::string all =
      fmt::format("for {} ways to cut (contiguous, permuted, random of 9, overlapping of 11)", cuts);
  claim.clauses = {
      algebraic(
          "Every segmented head, random and overlapping ones too, is a canonical head with rows of zeros: "
          "canonical heads can hold all that segmented ones can.",
          "outputs equal to 1e-6, " + all, fmt::format("largest relative difference {:.2g}", worst),
          worst <= 1e-6, OriginalSays::kSame),
      algebraic(
          "The converse does not hold: a canonical head whose rows outside a segment are set to 0 computes "
          "something else.",
          "more than 0.1 of the outputs' norm away, " + all,
          fmt::format("at least {:.2f} of the norm away", least), least > 0.1, OriginalSays::kOpposite)};
  return claim;
}

constexpr AlgebraCheck kChecks[] = {{"001.2", initialisations},
                                    {"001.4", segments_are_canonical},
                                    {"001.6", not_segmented},
                                    {"001.7", merging}};

}  // namespace

std::span<const AlgebraCheck> algebra() {
  return kChecks;
}

}  // namespace mh::diversity
