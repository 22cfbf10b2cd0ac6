// 002: why two matrices? What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/families/marian.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

/// w_qk and c_qk of a merged layer that computes the scores of `canonical`.
void merge(Layer& canonical, Layer& merged, bool transpose_product) {
  const HeadGeometry& g = canonical.geometry();
  const Matrix q = canonical.parameter("w_q"), k = canonical.parameter("w_k"),
               bias = canonical.parameter("b_q");
  std::vector<Matrix> w, c;
  for (int h = 0; h < g.heads; ++h) {
    const Matrix own_k = columns(k, h * g.d_key, (h + 1) * g.d_key);
    const Matrix one = product_transposed(columns(q, h * g.d_key, (h + 1) * g.d_key), own_k);
    w.push_back(transpose_product ? transposed(one) : one);
    c.push_back(product_transposed(columns(bias, h * g.d_key, (h + 1) * g.d_key), own_k));
  }
  merged.set("w_qk", beside(w));
  merged.set("c_qk", beside(c));
  for (const char* name : {"w_v", "b_v", "w_o", "b_o"}) merged.set(name, canonical.parameter(name));
}

/// mistaken: W_i^K W_i^Q^T instead of W_i^Q W_i^K^T.
Claim one_matrix(const AlgebraCase& a) {
  constexpr int kModel = 12, kHeads = 3, kKey = 5;
  Claim claim{
      .id = "002.1",
      .statement =
          "x W_i^Q (x W_i^K)^T is x W_i x^T with W_i = W_i^Q W_i^K^T; with biases c_i = b_i^Q W_i^K^T comes "
          "along and b^K cancels in the softmax. With rotary positions between them no single W_i does.",
      .original_words = "\"Q_i K_i^T = Q W_i K^T\" (the asker; he calls it the outer product).",
      .original_statement = OriginalStatement::kRight,
      .tolerance =
          "outputs equal to 1e-5; with rotary positions the W that would be needed changes with the "
          "distance by more than 0.1 of its norm"};
  Random random(a.seed, 21);
  const Matrix x = random_matrix(7, kModel, random);
  Layer canonical({.heads = kHeads, .d_key = kKey}, kModel, a.seed);
  for (const char* name : {"b_q", "b_k", "b_v"}) {
    canonical.set(name, random_matrix(1, canonical.parameter(name).cols(), random));
  }
  Layer merged({.heads = kHeads, .d_key = kKey, .scores = Scores::kMerged}, kModel, a.seed + 1);
  merge(canonical, merged, a.mistaken);
  const Matrix expected = canonical.output(x);
  const double difference = largest_difference(merged.output(x), expected) / largest(expected);
  // The score of rows m apart is x W^Q R(m) W^K^T x^T: R turns pairs of numbers by m theta.
  const Matrix q = random_matrix(kModel, 2, random), k = random_matrix(kModel, 2, random);
  const auto needed = [&](double angle) {
    Matrix turn(2, 2);
    turn(0, 0) = turn(1, 1) = std::cos(angle);
    turn(0, 1) = -(turn(1, 0) = std::sin(angle));
    return product_transposed(product(q, turn), k);
  };
  const double moved = norm(sum(needed(1), needed(0), -1)) / norm(needed(0));
  claim.measured = fmt::format(
      "merged against factored, biases included: relative difference {:.1e}; with rotary positions "
      "the matrix needed at distance 1 is {:.2f} of its norm away from the one at distance 0",
      difference, moved);
  claim.verdict = difference <= 1e-5 && moved > 0.1 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: d_k is taken for d / 2 throughout.
Claim parameters(const AlgebraCase& a) {
  constexpr int kModel = 32, kHeads = 2;
  Claim claim{.id = "002.3",
              .statement =
                  "Parameters of a head's scores: 2 d d_k against d^2, so merged has fewer iff d_k > d/2. "
                  "Multiplications: 2 T d d_k + T^2 d_k against T d^2 + T^2 d.",
              .original_words =
                  "\"The utility of using W^Q and W^K, rather than W, lies in the fact that they allow us to "
                  "add fewer parameters.\"",
              .original_statement = OriginalStatement::kRight,
              .tolerance = "counted parameters equal to the formulas for d_k = 4, 8, 16, 24, 32 at d = 32"};
  Table table{"a head's parameters for scores, d = 32",
              {"d_k", "two matrices", "one", "fewer", "multiplications at T = 16: two", "one"},
              {}};
  bool right = true;
  for (const int key : {4, 8, 16, 24, 32}) {
    const auto count = [&](Scores scores) {
      Layer layer({.heads = kHeads, .d_key = key, .d_value = 16, .scores = scores, .biases = Biases::kNone},
                  kModel, a.seed);
      return (layer.parameter_count() - int64_t{2} * kModel * kHeads * 16) / kHeads;
    };
    const int64_t two = count(Scores::kQueryKey), one = count(Scores::kMerged);
    const int64_t of_two = 2 * kModel * (a.mistaken ? kModel / 2 : key), of_one = kModel * kModel;
    right = right && two == of_two && one == of_one && (one < two) == (2 * key > kModel);
    constexpr int64_t t = 16;
    table.rows.push_back({std::to_string(key), std::to_string(two), std::to_string(one),
                          one < two   ? "one"
                          : one > two ? "two"
                                      : "equal",
                          std::to_string(2 * t * kModel * key + t * t * key),
                          std::to_string(t * kModel * kModel + t * t * kModel)});
  }
  claim.measured = right ? "counted in layers made here: as the formulas say; equal at d_k = d/2"
                         : "the counts differ from the formulas";
  claim.tables.push_back(std::move(table));
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the step of W_i alone is taken for that of the product.
Claim doubled_step(const AlgebraCase& a) {
  constexpr int kModel = 9, kKey = 4;
  Claim claim{
      .id = "002.5",
      .statement =
          "The doubled projection x W^Q W_i^Q is one matrix, the same function; but a gradient step moves "
          "the product by -eta (W^Q W^Q^T G + G W_i^T W_i), not by -eta G.",
      .original_words = "\"Matrices W^Q, W^K, W^V (each d_model x d_model) are completely removed instead.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "function equal to 1e-5; the step as predicted to 1e-3, and further than 0.1 from -eta G"};
  Random random(a.seed, 25);
  const Matrix x = random_matrix(8, kModel, random), seed = random_matrix(8, kModel, random);
  Layer doubled({.heads = 1, .d_key = kKey, .scores = Scores::kDoubled, .biases = Biases::kNone}, kModel,
                a.seed);
  Layer single({.heads = 1, .d_key = kKey, .biases = Biases::kNone}, kModel, a.seed + 1);
  const Matrix w = doubled.parameter("w_before_q"), w_i = doubled.parameter("w_q");
  for (const char letter : {'q', 'k', 'v'}) {
    const std::string own = std::string("w_") + letter, before = std::string("w_before_") + letter;
    const auto names = doubled.names();
    const bool has = std::find(names.begin(), names.end(), before) != names.end();
    single.set(own,
               has ? product(doubled.parameter(before), doubled.parameter(own)) : doubled.parameter(own));
  }
  single.set("w_o", doubled.parameter("w_o"));
  const Matrix expected = single.output(x);
  const double same = largest_difference(doubled.output(x), expected) / largest(expected);
  doubled.output_gradients(x, seed);
  single.output_gradients(x, seed);
  const Matrix g = single.gradient("w_q");
  constexpr double kEta = 1e-4;
  const Matrix stepped_w = sum(w, doubled.gradient("w_before_q"), -kEta),
               stepped_w_i = sum(w_i, doubled.gradient("w_q"), -kEta);
  const Matrix moved = sum(product(stepped_w, a.mistaken ? w_i : stepped_w_i), product(w, w_i), -1);
  const Matrix predicted =
      scaled(sum(product(product_transposed(w, w), g), product(g, product(transposed(w_i), w_i))), -kEta);
  const double error = norm(sum(moved, predicted, -1)) / norm(predicted);
  const double from_plain = 1 - cosine(moved, scaled(g, -kEta));
  claim.measured = fmt::format(
      "function: {:.1e} apart; the step of the product is {:.1e} of its norm from the prediction; its "
      "direction and -G have a cosine of {:.2f}",
      same, error, 1 - from_plain);
  claim.verdict = same <= 1e-5 && error <= 1e-3 && from_plain > 0.01 ? Verdict::kPass : Verdict::kFail;
  claim.tolerance = "function equal to 1e-5; the step as predicted to 1e-3; its cosine with -G below 0.99";
  return claim;
}

/// mistaken: a doubled model is looked into.
Claim stored(const AlgebraCase& a) {
  Claim claim{
      .id = "002.6",
      .statement =
          "What is stored is W_i^{Q*} [d, d/h] of every head side by side, and nothing else: head_i = "
          "Attention(Q_i, K_i, V_i).",
      .original_words =
          "JimSi: \"I would really like to know if this is redundant now and it can be head_i = "
          "Attention(Q_i, K_i, V_i).\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "an attention in model.safetensors has four matrices [d, d] and their biases"};
  EncoderDecoderConfig config = transformer_preset("tiny");
  config.vocabulary_size = 11;
  config.encoder_layers = config.decoder_layers = 1;
  if (a.mistaken) config.geometry.scores = Scores::kDoubled;
  EncoderDecoder model(config);
  model.initialise(a.seed);
  Table table{"encoder layer 0's attention in the file", {"tensor", "shape"}, {}};
  int matrices = 0;
  bool square = true;
  const SafetensorsFile file = SafetensorsFile::from_bytes(
      write_encoder_decoder_weights(model, a.mistaken ? "multihead" : "marian"), "model.safetensors");
  for (const TensorEntry& tensor : file.entries()) {
    const std::string& name = tensor.name;
    if (name.find("encoder") == std::string::npos || name.find("decoder") != std::string::npos) continue;
    if (name.find("self_attn") == std::string::npos && name.find("self_attention") == std::string::npos)
      continue;
    if (name.find("layer_norm") != std::string::npos || name.find("norm") != std::string::npos) continue;
    std::string shape;
    for (const auto n : tensor.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(n);
    if (tensor.shape.size() == 2 && tensor.shape[0] > 1) {
      ++matrices;
      square = square && tensor.shape[0] == config.d_model && tensor.shape[1] == config.d_model;
    }
    table.rows.push_back({name, "[" + shape + "]"});
  }
  claim.measured = fmt::format(
      "{} matrices in encoder layer 0's attention: {}", matrices,
      square ? "each [128, 128], the four heads' [128, 32] side by side" : "not all of them [128, 128]");
  claim.tables.push_back(std::move(table));
  claim.verdict = matrices == 4 && square ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: W^K does not start as a copy.
Claim aggcn(const AlgebraCase& a) {
  constexpr int kModel = 12, kHeads = 3, kSize = 4;
  Claim claim{
      .id = "002.7",
      .statement =
          "AGGCN's d x d matrices are the h heads' stacked: the two computations agree. Its W^K starts as a "
          "deep copy of W^Q, so scores start symmetric.",
      .original_words =
          "BioBroo: \"have W^Q and W^K be of dimension d_model x d_model. I don't know if there is a reason "
          "for this, or if it's a typo.\" Neither: it is the stacked form.",
      .original_statement = OriginalStatement::kNotMade,
      .tolerance = "outputs equal to 1e-5; scores at the start symmetric to 1e-6"};
  Random random(a.seed, 27);
  const Matrix x = random_matrix(6, kModel, random);
  HeadGeometry geometry = geometry_preset("aggcn", kHeads, kModel);
  geometry.biases = Biases::kNone;
  if (a.mistaken) geometry.initialisation = HeadInitialisation::kXavierPacked;
  Layer layer(geometry, kModel, a.seed);
  std::vector<Head> heads;
  double asymmetry = 0;
  for (int h = 0; h < kHeads; ++h) {
    const auto part = [&](const char* name) {
      return columns(layer.parameter(name), h * kSize, (h + 1) * kSize);
    };
    Head head{part("w_q"), part("w_k"), part("w_v"),
              transposed(columns(transposed(layer.parameter("w_o")), h * kSize, (h + 1) * kSize))};
    const Matrix s = scores(x, head);
    asymmetry = std::max(asymmetry, largest_difference(s, transposed(s)) / largest(s));
    heads.push_back(std::move(head));
  }
  const Matrix expected = multi_head(x, heads, 1 / std::sqrt(kSize));
  const double difference = largest_difference(layer.output(x), expected) / largest(expected);
  claim.measured = fmt::format(
      "one product of [12, 12] and three heads of [12, 4]: relative difference {:.1e}; asymmetry of the "
      "scores at the start {:.1e}",
      difference, asymmetry);
  claim.verdict = difference <= 1e-5 && asymmetry <= 1e-6 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: row means are left in, as if a softmax could not take them away.
Claim bottleneck(const AlgebraCase& a) {
  Claim claim{
      .id = "002.8",
      .statement =
          "The low-rank bottleneck: for x of full row rank a positive row-stochastic P is reachable iff "
          "log P without its row means has rank at most d_k; T = 3 needs d_k = 2 (Bhojanapalli et al. 2020).",
      .tolerance =
          "d_k = 2: weights equal P to 1e-9; d_k = 1: further than 0.05 from it whatever W^Q, W^K are"};
  Random random(a.seed, 28);
  Matrix p = softmax_rows(scaled(random_matrix(3, 3, random), 0.3));
  for (int i = 0; i < 3; ++i)
    p(i, i) += 2;  // each row looks at itself: no ordering of the keys serves all of them
  for (int i = 0; i < 3; ++i) {
    double total = 0;
    for (int j = 0; j < 3; ++j) total += p(i, j);
    for (int j = 0; j < 3; ++j) p(i, j) /= total;
  }
  Matrix logs(3, 3);
  for (int i = 0; i < 3; ++i) {
    double mean = 0;
    for (int j = 0; j < 3; ++j) mean += std::log(p(i, j)) / 3;
    for (int j = 0; j < 3; ++j) logs(i, j) = std::log(p(i, j)) - (a.mistaken ? 0 : mean);
  }
  // With x the identity, W^Q W^K^T is the matrix of scores. Columns 0 and 1 of the centred logs give the
  // third: logs = [c0 c1] [[1, 0, -1], [0, 1, -1]].
  Head two{columns(logs, 0, 2), Matrix(3, 2), {}, {}};
  two.k(0, 0) = two.k(1, 1) = 1;
  two.k(2, 0) = two.k(2, 1) = -1;
  Matrix identity(3, 3);
  for (int i = 0; i < 3; ++i) identity(i, i) = 1;
  const double with_two = largest_difference(weights(identity, two, 1), p);
  // d_k = 1: scores q_i k_j. Keys lie on a line, so the best of a key in the middle cannot exceed what its
  // neighbours leave it; the search below finds how near it comes.
  double with_one = 1;
  for (int start = 0; start < 40; ++start) {
    Head one{random_matrix(3, 1, random, 2), random_matrix(3, 1, random, 2), {}, {}};
    double step = 1, best = largest_difference(weights(identity, one, 1), p);
    for (int i = 0; i < 2000 && step > 1e-6; ++i) {
      Head near = one;
      for (int r = 0; r < 3; ++r)
        near.q(r, 0) += step * random.normal(), near.k(r, 0) += step * random.normal();
      const double found = largest_difference(weights(identity, near, 1), p);
      if (found < best)
        best = found, one = std::move(near);
      else
        step *= 0.99;
    }
    with_one = std::min(with_one, best);
  }
  claim.measured = fmt::format(
      "d_k = 2: largest difference of a weight {:.1e}; d_k = 1: the best of 40 searches stays {:.2f} away",
      with_two, with_one);
  claim.verdict = with_two <= 1e-9 && with_one > 0.05 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

constexpr AlgebraCheck kChecks[] = {{"002.1", one_matrix}, {"002.3", parameters}, {"002.5", doubled_step},
                                    {"002.6", stored},     {"002.7", aggcn},      {"002.8", bottleneck}};

}  // namespace

std::span<const AlgebraCheck> algebra() {
  return kChecks;
}

}  // namespace mh::two_matrices_or_one
