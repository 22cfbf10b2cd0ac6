// 001: diverse heads. What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
      gradients;  // of w_q; cosine of V of heads 0 and 1; difference of their gradients
  bool symmetric;
};
Start start_of(HeadInitialisation initialisation, uint64_t seed) {
  Random random(seed, 12);
  const Matrix x = random_matrix(9, kModel, random), towards = random_matrix(9, kModel, random);
  Layer layer({.heads = kHeads, .biases = Biases::kNone, .initialisation = initialisation}, kModel, seed);
  layer.output_gradients(x, towards);
  Start start{deviation(layer.parameter("w_q")), 0, 0, true};
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
  start.symmetric = largest_difference(s, transposed(s)) <= 1e-6 * largest(s);
  return start;
}

/// mistaken: noise of 1e-6 is added to the equal heads.
Claim initialisations(const AlgebraCase& a) {
  using enum HeadInitialisation;
  Claim claim{
      .id = "001.2",
      .statement =
          "Random starts make heads different; equal heads with equal W_i^O get bit-equal gradients and stay "
          "equal; different W_i^O, or noise of 1e-6, breaks the tie. A packed in_proj starts W^Q smaller by "
          "sqrt(2) than one matrix alone.",
      .tolerance =
          "equal: gradients bit for bit; all others different; deviations of Xavier's fans to 5 %; copied "
          "keys: symmetric scores"};
  struct Row {
    const char* name;
    HeadInitialisation initialisation;
    double fan_out;  // 0: not Xavier's
  };
  Table table{
      "heads 0 and 1 of 4 at the start, d = 24",
      {"initialisation", "deviation of W^Q", "cosine of V_0, V_1", "gradients differ by", "symmetric scores"},
      {}};
  bool right = true;
  double equal = 0;
  for (const Row& row :
       {Row{"Xavier, fans (d, d_k)", kXavierHead, kSize}, Row{"Xavier, fans (d, d)", kXavier, kModel},
        Row{"Xavier, fans (d, 3 d)", kXavierPacked, 3 * kModel}, Row{"orthogonal by head", kOrthogonal, 0},
        Row{"all heads equal", a.mistaken ? kEqualWithNoise : kEqual, 0},
        Row{"equal but for W_i^O", kEqualInput, 0}, Row{"equal, noise of 1e-6", kEqualWithNoise, 0},
        Row{"W^K a copy of W^Q", kCopiedKeys, 0}}) {
    const Start start = start_of(row.initialisation, a.seed);
    const bool tied = std::string_view(row.name) == "all heads equal";
    if (tied) equal = start.gradients;
    right = right && (start.gradients == 0) == tied && start.symmetric == (row.initialisation == kCopiedKeys);
    if (row.fan_out > 0) {
      const double expected =
          std::sqrt(2.0 / (kModel + row.fan_out));  // of a uniform number within sqrt(6 / fans)
      right = right && std::abs(start.deviation / expected - 1) <= 0.05;
    }
    table.rows.push_back({row.name, fmt::format("{:.4f}", start.deviation),
                          fmt::format("{:.3f}", start.similarity), fmt::format("{:.2g}", start.gradients),
                          start.symmetric ? "yes" : "no"});
  }
  claim.measured = fmt::format("equal heads: gradients {}; every other start: different ones",
                               equal == 0 ? "bit for bit the same" : fmt::format("{:.1e} apart", equal));
  claim.tables.push_back(std::move(table));
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the rows are put one column further.
Claim segments_are_canonical(const AlgebraCase& a) {
  Claim claim{.id = "001.4",
              .statement =
                  "Every segmented head, random and overlapping ones too, is a canonical head with zero "
                  "rows: segments are a restriction of what canonical heads can learn.",
              .original_words =
                  "Deil: \"I wonder if it is beneficial to randomly sample embedding space and form segments "
                  "that can even "
                  "overlap.\" The reply: \"it is in essence what multihead is doing during training\".",
              .original_statement = OriginalStatement::kHalfRight,
              .tolerance = "outputs equal to 1e-6"};
  Random random(a.seed, 14);
  const Matrix x = random_matrix(8, kModel, random);
  double worst = 0;
  int cuts = 0;
  for (const HeadColumns& segments :
       {slice_columns(kHeads, kModel), permuted_slices(kHeads, kModel, a.seed),
        random_columns(kHeads, 9, kModel, a.seed), spread_segments(kHeads, 11, kModel)}) {
    Layer segmented(
        {.heads = kHeads, .d_key = kSize, .input = HeadInput::of_columns(segments), .biases = Biases::kNone},
        kModel, a.seed);
    Layer canonical({.heads = kHeads, .d_key = kSize, .biases = Biases::kNone}, kModel, a.seed + 1);
    for (const char* name : {"w_q", "w_k", "w_v"}) {
      const Matrix w = segmented.parameter(name);  // [sum of segments, d_key]
      Matrix whole(kModel, int64_t{kHeads} * kSize);
      int64_t row = 0;
      for (int h = 0; h < kHeads; ++h) {
        for (const int32_t c : segments[static_cast<size_t>(h)]) {
          for (int k = 0; k < kSize; ++k) whole((c + a.mistaken) % kModel, h * kSize + k) = w(row, k);
          ++row;
        }
      }
      canonical.set(name, whole);
    }
    const Matrix expected = segmented.heads(x);
    worst = std::max(worst, largest_difference(canonical.heads(x), expected) / largest(expected));
    ++cuts;
  }
  claim.measured = fmt::format(
      "{} ways to cut (contiguous, permuted, random of 9, overlapping of 11): largest relative difference "
      "{:.1e}",
      cuts, worst);
  claim.verdict = worst <= 1e-6 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the outputs are taken to lie as [T, h, d_v] where they lie as [h, T, d_v].
Claim merging(const AlgebraCase& a) {
  constexpr int kTokens = 3, kMany = 2, kWidth = 2;
  Claim claim{.id = "001.7",
              .statement =
                  "What is merged are the heads' outputs, not their scores. From [T, h, d_v] that is a bare "
                  "reshape; from [h, T, d_v] a bare reshape scrambles the words. After it comes W^O.",
              .original_words =
                  "\"The attention score of each head is merged by simply reshaping the full attention score "
                  "matrix\" (after Doshi; W^O is left out).",
              .original_statement = OriginalStatement::kHalfRight,
              .tolerance = "reshape of [T, h, d_v] equals Concat exactly; of [h, T, d_v] it does not"};
  // The number says whose it is: head, word, place.
  const auto number = [](int h, int t, int c) { return 100.0 * h + 10 * t + c; };
  Matrix expected(kTokens, kMany * kWidth), from_tokens(kTokens, kMany * kWidth),
      from_heads(kTokens, kMany * kWidth);
  for (int h = 0; h < kMany; ++h) {
    for (int t = 0; t < kTokens; ++t) {
      for (int c = 0; c < kWidth; ++c) {
        expected(t, h * kWidth + c) = number(h, t, c);
        const int by_token = (t * kMany + h) * kWidth + c, by_head = (h * kTokens + t) * kWidth + c;
        from_tokens.data()[a.mistaken ? by_head : by_token] = number(h, t, c);
        from_heads.data()[by_head] = number(h, t, c);
      }
    }
  }
  const auto show = [](const Matrix& m) {
    std::string text;
    for (int64_t i = 0; i < m.size(); ++i)
      text += fmt::format("{}{:03.0f}", i == 0 ? "" : i % m.cols() == 0 ? " | " : " ", m.data()[i]);
    return text;
  };
  claim.tables.push_back({"rows of Concat(head_0, head_1); digits: head, word, place",
                          {"from", "word 0 | word 1 | word 2"},
                          {{"Concat", show(expected)},
                           {"[T, h, d_v] reshaped", show(from_tokens)},
                           {"[h, T, d_v] reshaped", show(from_heads)}}});
  const bool right =
      largest_difference(from_tokens, expected) == 0 && largest_difference(from_heads, expected) > 0;
  claim.measured = right ? "from [T, h, d_v] the reshape is exact; from [h, T, d_v] word 0's row holds head "
                           "0 of words 0 and 1"
                         : "the reshape from [T, h, d_v] is not the concatenation";
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the layer cuts its input.
Claim not_segmented(const AlgebraCase& a) {
  Claim claim{.id = "001.6",
              .statement =
                  "\"The embedding gets segmented across heads\" is false for canonical heads: exchanging "
                  "two numbers of every row changes every head's output, and so does any one of them.",
              .original_words =
                  "\"The embedding vectors for the input gets 'segmented' across multiple heads and "
                  "therefore different sections of the embedding can attend different per-head subspaces.\"",
              .original_statement = OriginalStatement::kWrong,
              .tolerance = "each of the 24 numbers, changed alone, moves all 4 heads"};
  Random random(a.seed, 16);
  const Matrix x = random_matrix(5, kModel, random);
  Layer layer(
      {.heads = kHeads, .input = a.mistaken ? HeadInput::slices() : HeadInput{}, .biases = Biases::kNone},
      kModel, a.seed);
  const Matrix before = layer.heads(x);
  int least = kHeads;
  for (int c = 0; c < kModel; ++c) {
    Matrix changed = x;
    for (int64_t t = 0; t < x.rows(); ++t) changed(t, c) += 1;
    const Matrix after = layer.heads(changed);
    int moved = 0;
    for (int h = 0; h < kHeads; ++h) {
      moved += largest_difference(columns(after, h * kSize, (h + 1) * kSize),
                                  columns(before, h * kSize, (h + 1) * kSize)) > 0;
    }
    least = std::min(least, moved);
  }
  claim.measured = fmt::format(
      "every number of a row, changed alone, moves at least {} of {} heads (000.1 has the Jacobian)", least,
      kHeads);
  claim.verdict = least == kHeads ? Verdict::kPass : Verdict::kFail;
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
