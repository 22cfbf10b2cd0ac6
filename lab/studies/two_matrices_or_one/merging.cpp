// 002.1: when the product W_i^Q W_i^K^T can stand for its two factors, and when it cannot.
#include <fmt/format.h>

#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/heads/site_values.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

constexpr int kModel = 12, kHeads = 3, kKey = 5;

enum class MergeMistake { kNone, kTransposed, kNoBias };

/// Gives `merged` the numbers with which it computes the scores of `canonical`.
void merge(Layer& canonical, Layer& merged, MergeMistake slip) {
  const HeadGeometry& g = canonical.geometry();
  const Matrix q = canonical.parameter("w_q"), k = canonical.parameter("w_k"),
               bias = canonical.parameter("b_q");
  std::vector<Matrix> w, c;
  for (int h = 0; h < g.heads; ++h) {
    const Matrix own_k = columns(k, h * g.d_key, (h + 1) * g.d_key);
    const Matrix one = product_transposed(columns(q, h * g.d_key, (h + 1) * g.d_key), own_k);
    w.push_back(slip == MergeMistake::kTransposed ? transposed(one) : one);
    c.push_back(product_transposed(columns(bias, h * g.d_key, (h + 1) * g.d_key), own_k));
  }
  merged.set("w_qk", beside(w));
  merged.set("c_qk", scaled(beside(c), slip == MergeMistake::kNoBias ? 0 : 1));
  for (const char* name : {"w_v", "b_v", "w_o", "b_o"}) merged.set(name, canonical.parameter(name));
}

/// Of the outputs of a layer with these biases and of the layer that is merged from it.
double difference_when_merged(bool biases, MergeMistake slip, uint64_t seed) {
  Random random(seed, 21);
  const Matrix x = random_matrix(7, kModel, random);
  Layer canonical({.heads = kHeads, .d_key = kKey}, kModel, seed);
  for (const char* name : {"b_q", "b_k", "b_v"}) {
    const int64_t size = canonical.parameter(name).cols();
    canonical.set(name, biases ? random_matrix(1, size, random) : Matrix(1, size));
  }
  Layer merged({.heads = kHeads, .d_key = kKey, .scores = Scores::kMerged}, kModel, seed + 1);
  merge(canonical, merged, slip);
  const Matrix expected = canonical.output(x);
  return largest_difference(merged.output(x), expected) / largest(expected);
}

struct Kind {
  Positions positions = Positions::kNone;
  QueryKeyNorm norm = QueryKeyNorm::kNone;
};
struct Fit {
  double together = 0;     // what the best W of head 0 leaves of the scores, relative to their norm
  double by_distance = 0;  // the same with a W for each distance of key and query
};

/// Fits W to the scores of head 0 of a layer of the library in many sentences of two words. The softmax
/// shows their difference in a row, log A(a, b) - log A(a, a) = x_a W_1 x_b^T - x_a W_0 x_a^T, which is
/// linear in W_1 = W (distance b - a) and W_0 = W (distance 0); one matrix for all distances has W_1 = W_0.
Fit best_matrix(const Kind& kind, uint64_t seed) {
  constexpr int kSize = 6, kSentences = 300, kUnknowns = kSize * kSize;
  DropoutSites sites;
  MultiHeadAttention layer(
      "layer",
      {.d_model = kSize,
       .geometry = {.heads = 2, .d_key = 4, .query_key_norm = kind.norm, .biases = Biases::kNone},
       .positions = kind.positions},
      sites);
  Random random(seed, 210);
  layer.initialise(random);
  const Matrix x = random_matrix(2 * kSentences, kSize, random);
  const Tensor rows = in_float(x);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>(kSentences, 2));
  SiteValues seen;
  seen.keep("layer.weights.0");
  Tape tape;
  Context context{.tape = tape, .sites = &seen};
  layer.self_heads(context, tape.constant(const_cast<Tensor&>(rows).view()),
                   {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::none());
  // The first word is the query: its keys are at the distances 0 and 1.
  Matrix apart(kSentences, 2 * kUnknowns), one(kSentences, kUnknowns), scores(kSentences, 1);
  for (int s = 0; s < kSentences; ++s) {
    const ConstMatrixView w = seen.kept("layer.weights.0").sequence(s);
    scores(s, 0) = std::log(static_cast<double>(w(0, 1))) - std::log(static_cast<double>(w(0, 0)));
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j < kSize; ++j) {
        const int at = i * kSize + j;
        apart(s, at) = x(2 * s, i) * x(2 * s + 1, j);
        apart(s, kUnknowns + at) = -x(2 * s, i) * x(2 * s, j);
        one(s, at) = apart(s, at) + apart(s, kUnknowns + at);
      }
    }
  }
  const auto left = [&](const Matrix& inputs) {
    const Matrix best = least_squares(inputs.view(), scores.view());
    return norm(sum(product(inputs, best), scores, -1)) / norm(scores);
  };
  return {left(one), left(apart)};
}

}  // namespace

/// mistake 1: W_i^K W_i^Q^T instead of W_i^Q W_i^K^T; 2: c_i is left out; 3: the layer has rotary positions;
/// 4 and 5: it has none; 6: it has no norm.
Claim one_matrix(const AlgebraCase& a) {
  Claim claim{
      .id = "002.1",
      .statement =
          "One matrix W_i = W_i^Q W_i^K^T gives the same scores, x W_i^Q (x W_i^K)^T = x W_i x^T, unless "
          "something stands between the two factors: rotary positions or a norm of queries and keys.",
      .original_words = "\"Q_i K_i^T = Q W_i K^T\" (the asker; he calls W_i the outer product).",
      .original_remark =
          "W_i^Q W_i^K^T is a product of matrices: the sum of d_k outer products of their columns."};
  const double merged =
      difference_when_merged(false, a.mistake == 1 ? MergeMistake::kTransposed : MergeMistake::kNone, a.seed);
  claim.clauses.push_back(algebraic("A layer with W_i computes what the layer with W_i^Q and W_i^K computes.",
                                    "outputs equal to 1e-5 of the largest",
                                    fmt::format("largest difference {:.1e}", merged), merged <= 1e-5,
                                    OriginalSays::kSame));
  const double biased =
      difference_when_merged(true, a.mistake == 2 ? MergeMistake::kNoBias : MergeMistake::kNone, a.seed);
  claim.clauses.push_back(algebraic(
      "With biases, one more row c_i = b_i^Q W_i^K^T is needed; b_i^K is not, since it adds the same number "
      "to all scores of a query, and the softmax takes that away.",
      "outputs equal to 1e-5 of the largest", fmt::format("largest difference {:.1e}", biased),
      biased <= 1e-5));
  const Fit plain =
      best_matrix({.positions = a.mistake == 3 ? Positions::kRotary : Positions::kNone}, a.seed);
  claim.clauses.push_back(algebraic(
      "Least squares finds W_i again from the weights of a layer without positions and norm.",
      "the best W leaves at most 1e-4 of the norm of the scores",
      fmt::format("it leaves {:.1e}", plain.together), plain.together <= 1e-4, OriginalSays::kSame));
  const auto unless = [&](int mistake, Kind kind) {
    return best_matrix(a.mistake == mistake ? Kind{} : kind, a.seed);
  };
  const double rotary = unless(4, {.positions = Positions::kRotary}).together;
  claim.clauses.push_back(algebraic("With rotary positions no single W gives the scores of all distances.",
                                    "the best W leaves more than 0.1 of the norm of the scores",
                                    fmt::format("it leaves {:.2f}", rotary), rotary > 0.1));
  const Fit turned = unless(5, {.positions = Positions::kRotary});
  claim.clauses.push_back(
      algebraic("Each distance has a W of its own there, W_i^Q R(distance) W_i^K^T, in place of the one.",
                "one W for each distance leaves at most a thousandth of what one W for all leaves",
                fmt::format("{:.1e} against {:.1e}", turned.by_distance, turned.together),
                turned.by_distance <= 1e-3 * turned.together));
  const double normed = unless(6, {.norm = QueryKeyNorm::kL2}).by_distance;
  claim.clauses.push_back(algebraic(
      "With queries and keys scaled to length 1 no W gives the scores, not even one for each distance.",
      "the best leaves more than 0.1 of the norm of the scores", fmt::format("it leaves {:.2f}", normed),
      normed > 0.1));
  return claim;
}

}  // namespace mh::two_matrices_or_one
