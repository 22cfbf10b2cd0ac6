// 000: is the input split or duplicated? What follows from the formulas.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/split_or_project/claims.h"
#include "lab/studies/split_or_project/cost.h"

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

/// mistake 1: the layer cuts its input; 2: the gradient of all heads is taken for that of one.
Claim receptive_field(const AlgebraCase& a) {
  constexpr int kModel = 24, kHeads = 4;
  Claim claim{.id = "000.1",
              .statement =
                  "A canonical head reads all d numbers of a row; a head that gets a slice of the embedding "
                  "reads d/h of them.",
              .original_words = "\"Yes, the input is duplicated for each head.\""};
  Random random(a.seed, 1);
  const Matrix x = random_matrix(5, kModel, random);
  Layer canonical(plain(kHeads, a.mistake == 1 ? HeadInput::slices() : HeadInput{}), kModel, a.seed),
      sliced(plain(kHeads, HeadInput::slices()), kModel, a.seed);
  Table table{"numbers of a row of x [5, 24] that a head's output depends on (Jacobian by autograd)",
              {"head", "canonical", "sliced input"},
              {}};
  std::vector<int> whole, part;
  for (int h = 0; h < kHeads; ++h) {
    whole.push_back(touched(canonical, h, x, random, false));
    part.push_back(touched(sliced, h, x, random, a.mistake == 2));
    table.rows.push_back({std::to_string(h), std::to_string(whole.back()), std::to_string(part.back())});
  }
  const auto all = [](const std::vector<int>& counts, int wanted) {
    return std::all_of(counts.begin(), counts.end(), [&](int count) { return count == wanted; });
  };
  const auto found = [&](const std::vector<int>& counts) {
    return fmt::format("the heads' outputs have a derivative other than exactly 0 for {} of {} numbers",
                       fmt::join(counts, ", "), kModel);
  };
  claim.clauses = {
      algebraic("Every canonical head reads all d numbers of a row: each head gets the whole input.",
                fmt::format("{} of {} for each head", kModel, kModel), found(whole), all(whole, kModel),
                OriginalSays::kSame),
      algebraic("A head that gets a slice of the embedding reads exactly d/h of them.",
                fmt::format("{} of {} for each head", kModel / kHeads, kModel), found(part),
                all(part, kModel / kHeads))};
  claim.tables.push_back(std::move(table));
  return claim;
}

/// Turns each slice of s numbers by itself.
Matrix rotation_within_slices(int heads, int size, Random& random) {
  Matrix whole(int64_t{heads} * size, int64_t{heads} * size);
  for (int h = 0; h < heads; ++h) {
    const Matrix part = random_rotation(size, random);
    for (int r = 0; r < size; ++r) {
      for (int c = 0; c < size; ++c) whole(h * size + r, h * size + c) = part(r, c);
    }
  }
  return whole;
}

/// mistake 1: the weights are turned by R instead of its inverse; 2: R turns each slice by itself.
Claim basis(const AlgebraCase& a) {
  constexpr int kModel = 24, kHeads = 4, kSize = kModel / kHeads;
  Claim claim{.id = "000.2",
              .statement =
                  "Splitting depends on the basis of the embedding, which is arbitrary; projecting does not: "
                  "turn every embedding by a rotation R, and the projections by its inverse."};
  Random random(a.seed, 2);
  const Matrix x = random_matrix(7, kModel, random), rotation = random_rotation(kModel, random);
  const Matrix inverse = a.mistake == 1 ? rotation : transposed(rotation);
  Layer before(plain(kHeads), kModel, a.seed), after(plain(kHeads), kModel, a.seed);
  for (const char* name : {"w_q", "w_k", "w_v"}) after.set(name, product(inverse, before.parameter(name)));
  const Matrix expected = before.heads(x);
  const double canonical =
      largest_difference(after.heads(product(x, rotation)), expected) / largest(expected);

  Layer sliced(plain(kHeads, HeadInput::slices()), kModel, a.seed);
  const Matrix w = sliced.parameter("w_q");  // [d, s]: the rows of head i are its slice's
  const Matrix turn = transposed(a.mistake == 2 ? rotation_within_slices(kHeads, kSize, random) : rotation);
  double least = 1;
  for (int h = 0; h < kHeads; ++h) {
    Matrix whole(kModel, kSize);  // with the zero rows of the other slices
    for (int r = 0; r < kSize; ++r) {
      for (int c = 0; c < kSize; ++c) whole(h * kSize + r, c) = w(h * kSize + r, c);
    }
    Matrix turned = product(turn, whole);
    const double all = norm(turned);
    for (int r = 0; r < kSize; ++r) {
      for (int c = 0; c < kSize; ++c) turned(h * kSize + r, c) = 0;
    }
    least = std::min(least, norm(turned) / all);
  }
  claim.clauses = {
      algebraic("Canonical heads compute the same after the rotation.",
                "largest relative difference at most 1e-5",
                fmt::format("largest relative difference {:.2g}", canonical), canonical <= kRounding),
      algebraic(
          "Sliced heads cannot: turned back, a head's projection would have to read the other slices.",
          "more than half of each W_i^Q (by norm) lies outside its slice",
          fmt::format("at least {:.0f} % of each; random directions would give sqrt(1 - 1/h) = {:.0f} %",
                      100 * least, 100 * std::sqrt(1 - 1.0 / kHeads)),
          least > 0.5)};
  return claim;
}

/// mistake 1: the formula beside the layer forgets the scale; 2: d_k is taken for d_v.
Claim output_shape(const AlgebraCase& a) {
  Claim claim{
      .id = "000.4",
      .statement =
          "Any d_k and d_v work, and h need not divide d: W^O is [h d_v, d], and square only where h d_v = "
          "d.",
      .original_words =
          "\"With the choice d_k = d_v = d_model/h, W^O is a square matrix, but with different choices of "
          "d_k and d_v it would project the attention output in the same space of the input.\""};
  struct Shape {
    int d, h, d_k, d_v;
  };
  Table table{"layers that run here", {"d", "h", "d_k", "d_v", "W^O", "largest difference"}, {}};
  double worst = 0;
  int shapes = 0, shaped = 0, square = 0;
  for (const Shape s : {Shape{24, 4, 6, 6}, Shape{10, 3, 5, 7}, Shape{7, 3, 1, 2}, Shape{12, 5, 16, 3}}) {
    Random random(a.seed, 4);
    const auto heads = random_heads({s.h, s.d, s.d_k, s.d_v}, random);
    Layer layer({.heads = s.h, .d_key = s.d_k, .d_value = s.d_v, .biases = Biases::kNone}, s.d, a.seed);
    const Matrix w_o = layer.parameter("w_o");
    ++shapes;
    shaped += w_o.rows() == int64_t{s.h} * (a.mistake == 2 ? s.d_k : s.d_v) && w_o.cols() == s.d;
    square += w_o.rows() == w_o.cols();
    std::vector<Matrix> q, k, v, o;
    for (const Head& head : heads) {
      q.push_back(head.q), k.push_back(head.k), v.push_back(head.v), o.push_back(transposed(head.o));
    }
    layer.set("w_q", beside(q)), layer.set("w_k", beside(k)), layer.set("w_v", beside(v));
    layer.set("w_o", transposed(beside(o)));
    const Matrix x = random_matrix(6, s.d, random);
    const Matrix expected = multi_head(x, heads, a.mistake == 1 ? 1 : 1 / std::sqrt(s.d_k));
    const double difference = largest_difference(layer.output(x), expected) / largest(expected);
    worst = std::max(worst, difference);
    table.rows.push_back({std::to_string(s.d), std::to_string(s.h), std::to_string(s.d_k),
                          std::to_string(s.d_v), fmt::format("[{}, {}]", w_o.rows(), w_o.cols()),
                          fmt::format("{:.2g}", difference)});
  }
  claim.clauses = {
      algebraic("W^O brings the heads' outputs back to d numbers for any d_k and d_v: the layer equals "
                "sum_i Att_i W_i^O in double.",
                fmt::format("largest relative difference at most 1e-5 for {} shapes", shapes),
                fmt::format("largest relative difference {:.2g}", worst), worst <= kRounding,
                OriginalSays::kSame),
      algebraic("W^O is [h d_v, d], so it is square only where h d_v = d.",
                fmt::format("[h d_v, d] in {} of {} layers", shapes, shapes),
                fmt::format("in {} of {} layers; {} of them square", shaped, shapes, square),
                shaped == shapes, OriginalSays::kSame)};
  claim.tables.push_back(std::move(table));
  return claim;
}

/// mistake 1: the packed product is cut into heads the wrong way round, number c of head i at c h + i;
/// 2: the layer that should cut its input gets whole rows.
Claim split_after_projecting(const AlgebraCase& a) {
  constexpr int kModel = 24, kHeads = 4, kSize = kModel / kHeads;
  Claim claim{.id = "000.5",
              .statement =
                  "To split the projected Q, K and V is the same as h separate projections; to split the "
                  "input is another layer.",
              .original_words =
                  "The asker: \"it seems that they take the embeddings of size d_model, then split the[m] "
                  "into n heads, "
                  "so each head get[s] a piece of the embedding of size d_model/n\"."};
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
        for (int c = 0; c < kSize; ++c) of_head(r, c) = w(r, a.mistake == 1 ? c * kHeads + h : h * kSize + c);
      }
      alone.set(name, of_head);
    }
    same = std::max(same, largest_difference(alone.heads(x), columns(all, h * kSize, (h + 1) * kSize)));
  }
  same /= largest(all);
  Layer split(plain(kHeads, a.mistake == 2 ? HeadInput{} : HeadInput::slices()), kModel, a.seed);
  for (const char* name : {"w_q", "w_k", "w_v"}) {  // the very same numbers, as far as a slice can hold them
    const Matrix w = packed.parameter(name);
    if (a.mistake == 2) {
      split.set(name, w);
      continue;
    }
    Matrix part(kModel, kSize);
    for (int r = 0; r < kModel; ++r) {
      for (int c = 0; c < kSize; ++c) part(r, c) = w(r, r / kSize * kSize + c);
    }
    split.set(name, part);
  }
  const double other = norm(sum(split.heads(x), all, -1)) / norm(all);
  claim.clauses = {
      algebraic(
          "To split the projected Q, K and V into h pieces equals h separate projections of the whole row.",
          "largest difference at most 1e-5 of the largest output",
          fmt::format("{:.2g} of the largest output", same), same <= kRounding),
      algebraic("To split the input is another layer: with the same numbers in its matrices it gives other "
                "outputs.",
                "more than 0.1 of the outputs' norm away", fmt::format("{:.2f} of the norm away", other),
                other > 0.1, OriginalSays::kOpposite)};
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
