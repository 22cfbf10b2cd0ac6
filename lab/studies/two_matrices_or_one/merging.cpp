// 002.1: when the product W_i^Q W_i^K^T can stand for its two factors, and when it cannot.
#include <fmt/format.h>

#include <cmath>

#include "lab/studies/claim_words.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/heads/sites/site_values.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

constexpr int kModel = 12, kHeads = 3, kKey = 5;

/// Of the outputs of a layer with these biases and of the layer that is merged from it.
double difference_when_merged(bool biases, const AlgebraCase& a) {
  Random random(a.seed, 21);
  const Matrix x = random_matrix(7, kModel, random);
  Layer canonical({.heads = kHeads, .d_key = kKey}, kModel, a.seed);
  for (const char* name : {"b_q", "b_k", "b_v"}) {
    const int64_t size = canonical.parameter(name).cols();
    canonical.set(name, biases ? random_matrix(1, size, random) : Matrix(1, size));
  }
  Layer merged({.heads = kHeads, .d_key = kKey, .scores = Scores::kMerged}, kModel, a.seed + 1);
  std::vector<Matrix> w, c;
  for (int h = 0; h < kHeads; ++h) {
    const auto own = [&](const char* name) {
      return columns(canonical.parameter(name), h * kKey, (h + 1) * kKey);
    };
    const Matrix one = product_transposed(own("w_q"), own("w_k"));
    w.push_back(a.mistake == 1 ? transposed(one) : one);
    c.push_back(scaled(product_transposed(own("b_q"), own("w_k")), a.mistake == 2 ? 0 : 1));
  }
  merged.set("w_qk", beside(w));
  merged.set("c_qk", beside(c));
  for (const char* name : {"w_v", "b_v", "w_o", "b_o"}) merged.set(name, canonical.parameter(name));
  return relative_difference(merged.output(x), canonical.output(x));
}

struct Fit {
  double together = 0;     // what the best W of head 0 leaves of the scores, relative to their norm
  double by_distance = 0;  // the same with a W for each distance of key and query
};

/// Fits W to the scores of head 0 of a layer of the library in many sentences of two words. The softmax
/// shows their difference in a row, log A(a, b) - log A(a, a) = x_a W_1 x_b^T - x_a W_0 x_a^T, which is
/// linear in W_1 = W (distance b - a) and W_0 = W (distance 0); one matrix for all distances has W_1 = W_0.
Fit best_matrix(Positions positions, QueryKeyNorm query_key_norm, uint64_t seed) {
  constexpr int kSize = 6, kSentences = 300, kUnknowns = kSize * kSize;
  DropoutStreams streams;
  MultiHeadAttention layer(
      "layer",
      {.d_model = kSize,
       .geometry = {.heads = 2, .d_key = 4, .query_key_norm = query_key_norm, .biases = Biases::kNone},
       .positions = positions},
      streams);
  Random random(seed, 210);
  layer.initialise(random);
  const Matrix x = random_matrix(2 * kSentences, kSize, random);
  Tensor rows = in_float(x);
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>(kSentences, 2));
  SiteValues seen;
  seen.keep("layer.weights.0");
  Tape tape;
  Context context{.tape = tape, .sites = &seen};
  layer.self_heads(context, tape.constant(rows.view()), {.ids = {}, .ragged = &ragged, .sentences = {}},
                   Mask::none());
  // The first word is the query: its keys are at the distances 0 and 1.
  Matrix apart(kSentences, 2 * kUnknowns), one(kSentences, kUnknowns), scores(kSentences, 1);
  for (int s = 0; s < kSentences; ++s) {
    const ConstMatrixView w = seen.kept("layer.weights.0").sequence(s);
    scores(s, 0) = std::log(static_cast<double>(w(0, 1))) - std::log(static_cast<double>(w(0, 0)));
    for (int at = 0; at < kUnknowns; ++at) {
      const int i = at / kSize, j = at % kSize;
      apart(s, at) = x(2 * s, i) * x(2 * s + 1, j);
      apart(s, kUnknowns + at) = -x(2 * s, i) * x(2 * s, j);
      one(s, at) = apart(s, at) + apart(s, kUnknowns + at);
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
  Claim claim = claim_without_figures("002.1");
  for (const bool biases : {false, true}) decide_equal(claim, difference_when_merged(biases, a));
  const auto fit = [&](bool rotary, bool l2) {
    return best_matrix(rotary ? Positions::kRotary : Positions::kNone,
                       l2 ? QueryKeyNorm::kL2 : QueryKeyNorm::kNone, a.seed);
  };
  const Fit plain = fit(a.mistake == 3, false);
  decide(claim, plain.together <= 1e-4, fmt::format("it leaves {:.1e}", plain.together));
  const Fit rotary = fit(a.mistake != 4 && a.mistake != 5, false);
  decide(claim, rotary.together > 0.1, fmt::format("it leaves {:.2f}", rotary.together));
  decide(claim, rotary.by_distance <= 1e-3 * rotary.together,
         fmt::format("{:.1e} against {:.1e}", rotary.by_distance, rotary.together));
  const Fit normed = fit(false, a.mistake != 6);
  decide(claim, normed.by_distance > 0.1, fmt::format("it leaves {:.2f}", normed.by_distance));
  return claim;
}

}  // namespace mh::two_matrices_or_one
