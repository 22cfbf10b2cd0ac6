// 000: is the input split or duplicated? What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/split_or_project/claims.h"
#include "multihead/nn/ledger.h"

namespace mh::split_or_project {
namespace {

using namespace lab;

constexpr double kRounding = 1e-5;  // float32 beside double, relative

HeadGeometry plain(int heads, HeadInput input = {}) {
  return {.heads = heads, .input = std::move(input), .biases = Biases::kNone};
}

/// Coordinates of the row that head `head` reads: where d(Att_head)/dx is not exactly 0.
int touched(Layer& layer, int head, const Matrix& x, Random& random, bool seed_all) {
  const HeadGeometry& g = layer.geometry();
  Matrix seed(x.rows(), int64_t{g.heads} * g.d_value);
  for (int64_t t = 0; t < x.rows(); ++t) {
    for (int64_t c = 0; c < seed.cols(); ++c) {
      if (seed_all || c / g.d_value == head) seed(t, c) = random.normal();
    }
  }
  const Matrix gradient = layer.input_gradient(x, seed);
  int count = 0;
  for (int64_t c = 0; c < x.cols(); ++c) {
    bool any = false;
    for (int64_t t = 0; t < x.rows(); ++t) any = any || gradient(t, c) != 0;
    count += any;
  }
  return count;
}

/// mistaken: the gradient of all heads is taken for that of one.
Claim receptive_field(const AlgebraCase& a) {
  constexpr int kModel = 24, kHeads = 4;
  Claim claim{
      .id = "000.1",
      .statement =
          "A canonical head reads all d coordinates of a row; a head that gets a slice of the "
          "embedding reads exactly d/h of them.",
      .original_words = "\"Yes, the input is duplicated for each head.\" The asker thought it was split.",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "every canonical head d, every sliced head d/h, zeros exact"};
  Random random(a.seed, 1);
  const Matrix x = random_matrix(5, kModel, random);
  Layer canonical(plain(kHeads), kModel, a.seed), sliced(plain(kHeads, HeadInput::slices()), kModel, a.seed);
  Table table{"coordinates of x [5, 24] that a head's output depends on (Jacobian by autograd)",
              {"head", "canonical", "sliced input"},
              {}};
  bool right = true;
  for (int h = 0; h < kHeads; ++h) {
    const int whole = touched(canonical, h, x, random, a.mistaken),
              part = touched(sliced, h, x, random, a.mistaken);
    right = right && whole == kModel && part == kModel / kHeads;
    table.rows.push_back({std::to_string(h), std::to_string(whole), std::to_string(part)});
  }
  claim.measured = fmt::format(
      "a canonical head depends on {} of {} coordinates, a sliced one on {}; all the others "
      "have a derivative of exactly 0",
      table.rows[0][1], kModel, table.rows[0][2]);
  claim.tables.push_back(std::move(table));
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the weights are turned by R instead of its inverse.
Claim basis(const AlgebraCase& a) {
  constexpr int kModel = 24, kHeads = 4, kSize = kModel / kHeads;
  Claim claim{.id = "000.2",
              .statement =
                  "\"Splitting\" depends on an arbitrary basis, projecting does not: rotate the embedding by "
                  "R and the projections by its inverse, and canonical heads compute the same; no sliced "
                  "layer can.",
              .tolerance =
                  "canonical outputs equal to 1e-5; more than half of a rotated sliced projection lies "
                  "outside what a slice can hold"};
  Random random(a.seed, 2);
  const Matrix x = random_matrix(7, kModel, random), rotation = random_rotation(kModel, random);
  const Matrix inverse = a.mistaken ? rotation : transposed(rotation);
  Layer before(plain(kHeads), kModel, a.seed), after(plain(kHeads), kModel, a.seed);
  for (const char* name : {"w_q", "w_k", "w_v"}) after.set(name, product(inverse, before.parameter(name)));
  const Matrix expected = before.heads(x);
  const double canonical =
      largest_difference(after.heads(product(x, rotation)), expected) / largest(expected);

  Layer sliced(plain(kHeads, HeadInput::slices()), kModel, a.seed);
  const Matrix w = sliced.parameter("w_q");  // [d, s]: the rows of head i are its slice's
  double outside = 0;
  for (int h = 0; h < kHeads; ++h) {
    Matrix whole(kModel, kSize);  // with the zero rows of the other slices
    for (int r = 0; r < kSize; ++r) {
      for (int c = 0; c < kSize; ++c) whole(h * kSize + r, c) = w(h * kSize + r, c);
    }
    Matrix turned = product(transposed(rotation), whole);
    const double all = norm(turned);
    for (int r = 0; r < kSize; ++r) {
      for (int c = 0; c < kSize; ++c) turned(h * kSize + r, c) = 0;
    }
    outside += norm(turned) / all / kHeads;
  }
  claim.measured = fmt::format(
      "canonical: largest relative difference {:.1e}; of a sliced head's rotated projection "
      "{:.0f} % (by norm) would have to read other slices, about sqrt(1 - 1/h) = {:.0f} %",
      canonical, 100 * outside, 100 * std::sqrt(1 - 1.0 / kHeads));
  claim.verdict = canonical <= kRounding && outside > 0.5 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the sizes of heads do not shrink as they become more.
Claim cost(const AlgebraCase& a) {
  constexpr int kRow = 64, kTokens = 50;
  Claim claim{
      .id = "000.3",
      .statement =
          "At d_k = d/h multiply-adds and parameters are the same for any number of heads; exponentials grow "
          "as h T^2.",
      .original_words =
          "\"The total computational cost of the Multi-Head Attention is similar to that of a single-head "
          "attention with full dimensionality.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance =
          "parameters as counted in layers made here; equal parameters and multiply-adds for h = 1 ... 16; "
          "h T^2 exponentials"};
  Table table{fmt::format("a layer, d = {}, T = {}", kRow, kTokens),
              {"h", "parameters", "multiply-adds", "exponentials", "kept MiB", "forward us"},
              {}};
  Random random(a.seed, 3);
  const Matrix x = random_matrix(kTokens, kRow, random);
  bool right = true;
  std::vector<double> times;
  int64_t parameters = 0, multiply_adds = 0;
  for (const int h : {1, 2, 4, 8, 16}) {
    HeadGeometry geometry = plain(h);
    if (a.mistaken) geometry.d_key = 16;
    Layer layer(geometry, kRow, a.seed);
    const LedgerPart total = ledger(geometry, kRow, kTokens, kTokens).total();
    if (h == 1) parameters = total.parameters, multiply_adds = total.multiply_adds;
    right = right && total.parameters == layer.parameter_count() && total.parameters == parameters &&
            total.multiply_adds == multiply_adds && total.exponentials == int64_t{h} * kTokens * kTokens;
    times.push_back(layer.forward_seconds(x));
    table.rows.push_back({std::to_string(h), std::to_string(total.parameters),
                          std::to_string(total.multiply_adds), std::to_string(total.exponentials),
                          fmt::format("{:.3f}", static_cast<double>(total.kept_bytes) / (1 << 20)),
                          fmt::format("{:.0f}", 1e6 * times.back())});
  }
  claim.measured = fmt::format(
      "{}; 16 heads take {:.1f} times the time of one: the exponentials, and products too narrow to fill the "
      "registers",
      right ? "parameters and multiply-adds are equal, exponentials grow with h" : "the counts differ",
      times.back() / times.front());
  claim.tables.push_back(std::move(table));
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the formula beside it forgets the scale.
Claim output_shape(const AlgebraCase& a) {
  Claim claim{
      .id = "000.4",
      .statement =
          "W^O is [h d_v, d]: any d_k and d_v work, h need not divide d; it is square only when h d_v = d.",
      .original_words =
          "\"With the choice d_k = d_v = d_model/h, W^O is a square matrix, but with different choices "
          "... it would project the attention output in the same space of the input.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "the layer equals sum_i Att_i W_i^O in double to 1e-5 for every shape"};
  struct Shape {
    int d, h, d_k, d_v;
  };
  Table table{"layers that run here", {"d", "h", "d_k", "d_v", "W^O", "largest difference"}, {}};
  double worst = 0;
  for (const Shape s : {Shape{24, 4, 6, 6}, Shape{10, 3, 5, 7}, Shape{7, 3, 1, 2}, Shape{12, 5, 16, 3}}) {
    Random random(a.seed, 4);
    const auto heads = random_heads({s.h, s.d, s.d_k, s.d_v}, random);
    Layer layer({.heads = s.h, .d_key = s.d_k, .d_value = s.d_v, .biases = Biases::kNone}, s.d, a.seed);
    std::vector<Matrix> q, k, v, o;
    for (const Head& head : heads) {
      q.push_back(head.q), k.push_back(head.k), v.push_back(head.v), o.push_back(transposed(head.o));
    }
    layer.set("w_q", beside(q)), layer.set("w_k", beside(k)), layer.set("w_v", beside(v));
    layer.set("w_o", transposed(beside(o)));
    const Matrix x = random_matrix(6, s.d, random);
    const Matrix expected = multi_head(x, heads, a.mistaken ? 1 : 1 / std::sqrt(s.d_k));
    const double difference = largest_difference(layer.output(x), expected) / largest(expected);
    worst = std::max(worst, difference);
    table.rows.push_back({std::to_string(s.d), std::to_string(s.h), std::to_string(s.d_k),
                          std::to_string(s.d_v), fmt::format("[{}, {}]", s.h * s.d_v, s.d),
                          fmt::format("{:.1e}", difference)});
  }
  claim.measured = fmt::format("{} shapes, largest relative difference {:.1e}", table.rows.size(), worst);
  claim.tables.push_back(std::move(table));
  claim.verdict = worst <= kRounding ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the packed product is cut into heads the wrong way round, number c of head i at c h + i.
Claim split_after_projecting(const AlgebraCase& a) {
  constexpr int kModel = 24, kHeads = 4, kSize = kModel / kHeads;
  Claim claim{
      .id = "000.5",
      .statement =
          "Splitting the projected Q, K, V is a reshape and equals h separate projections; splitting "
          "the input is another layer.",
      .original_words =
          "The asker: \"they take the embeddings ..., then split them into n heads, so each head gets "
          "a piece of the embedding\".",
      .original_statement = OriginalStatement::kWrong,
      .tolerance = "packed and separate equal to 1e-5; the split input's output further away than 0.1"};
  Random random(a.seed, 5);
  const Matrix x = random_matrix(6, kModel, random);
  Layer packed(plain(kHeads), kModel, a.seed);
  const Matrix all = packed.heads(x);
  double same = 0;
  for (int h = 0; h < kHeads; ++h) {
    Layer alone({.heads = 1, .d_key = kSize, .biases = Biases::kNone}, kModel, a.seed);
    for (const char* name : {"w_q", "w_k", "w_v"}) {
      const Matrix w = packed.parameter(name);
      Matrix of_head(kModel, kSize);
      for (int r = 0; r < kModel; ++r) {
        for (int c = 0; c < kSize; ++c) of_head(r, c) = w(r, a.mistaken ? c * kHeads + h : h * kSize + c);
      }
      alone.set(name, of_head);
    }
    same = std::max(same, largest_difference(alone.heads(x), columns(all, h * kSize, (h + 1) * kSize)));
  }
  Layer sliced(plain(kHeads, HeadInput::slices()), kModel, a.seed);
  for (const char* name : {"w_q", "w_k", "w_v"}) {  // the very same numbers, as far as a slice can hold them
    const Matrix w = packed.parameter(name);
    Matrix part(kModel, kSize);
    for (int r = 0; r < kModel; ++r) {
      for (int c = 0; c < kSize; ++c) part(r, c) = w(r, r / kSize * kSize + c);
    }
    sliced.set(name, part);
  }
  const double other = norm(sum(sliced.heads(x), all, -1)) / norm(all);
  claim.measured = fmt::format(
      "packed against separate: {:.1e} of the largest output; with the input split and the "
      "same numbers: {:.2f} of the output's norm away",
      same / largest(all), other);
  claim.verdict = same / largest(all) <= kRounding && other > 0.1 ? Verdict::kPass : Verdict::kFail;
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
