// Activation patching of three tokens beside a calculation in float64.
#include "multihead/heads/patching/heads_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/heads/patching/patch_families.h"

namespace mh {
namespace {

using namespace test;

/// One layer of two heads in double: x = E + P; x + [heads] W_O of the layer-normed x; the logits of the normed last row.
struct HandModel {
  explicit HandModel(const Model& model) : weights(model) {}
  test::WholeMatrices weights;

  using Rows = std::vector<std::vector<double>>;
  static Rows product(const Rows& a, const DoubleMatrix& b) {
    Rows all(a.size(), std::vector<double>(static_cast<size_t>(b.cols())));
    for (size_t i = 0; i < a.size(); ++i) {
      for (int64_t j = 0; j < b.cols(); ++j) {
        for (int64_t k = 0; k < b.rows(); ++k)
          all[i][static_cast<size_t>(j)] += a[i][static_cast<size_t>(k)] * b(k, j);
      }
    }
    return all;
  }
  void add(Rows& rows, const std::string& bias) const {
    for (auto& row : rows) {
      for (size_t j = 0; j < row.size(); ++j) row[j] += weights.at(bias)(0, static_cast<int64_t>(j));
    }
  }
  Rows norm(Rows rows, const std::string& name) const {
    for (auto& row : rows) {
      double mean = 0, square = 0;
      for (const double x : row) mean += x / static_cast<double>(row.size());
      for (const double x : row) square += (x - mean) * (x - mean) / static_cast<double>(row.size());
      for (size_t j = 0; j < row.size(); ++j) {
        row[j] = (row[j] - mean) / std::sqrt(square + 1e-5) *
                     weights.at(name + ".gain")(0, static_cast<int64_t>(j)) +
                 weights.at(name + ".bias")(0, static_cast<int64_t>(j));
      }
    }
    return rows;
  }
  Rows projected(const Rows& rows, const std::string& letter) const {
    Rows all = product(rows, weights.at("decoder.0.self_attention.w_" + letter));
    add(all, "decoder.0.self_attention.b_" + letter);
    return all;
  }
  Rows embedded(const std::vector<int32_t>& ids) const {
    Rows all;
    for (size_t i = 0; i < ids.size(); ++i) {
      all.emplace_back();
      for (int64_t j = 0; j < weights.at("embedding").cols(); ++j)
        all[i].push_back(weights.at("embedding")(ids[i], j) +
                         weights.at("positions")(static_cast<int64_t>(i), j));
    }
    return all;
  }
  /// [T, heads * size]
  Rows heads(const std::vector<int32_t>& ids, size_t count) const {
    const Rows x = norm(embedded(ids), "decoder.0.self_attention_norm"), q = projected(x, "q"),
               k = projected(x, "k"), v = projected(x, "v");
    const size_t d_key = q[0].size() / count, d_value = v[0].size() / count;
    Rows all(ids.size(), std::vector<double>(v[0].size()));
    for (size_t h = 0; h < count; ++h) {
      for (size_t i = 0; i < ids.size(); ++i) {
        std::vector<double> weight(i + 1);
        double sum = 0;
        for (size_t j = 0; j <= i; ++j) {
          double score = 0;
          for (size_t c = h * d_key; c < (h + 1) * d_key; ++c) score += q[i][c] * k[j][c];
          sum += weight[j] = std::exp(score / std::sqrt(static_cast<double>(d_key)));
        }
        for (size_t j = 0; j <= i; ++j) {
          for (size_t c = h * d_value; c < (h + 1) * d_value; ++c) all[i][c] += weight[j] / sum * v[j][c];
        }
      }
    }
    return all;
  }
  /// log p of two words after the last token.
  AnswerScores scores(const std::vector<int32_t>& ids, const Rows& heads, int32_t answer,
                      int32_t wrong) const {
    Rows x = embedded(ids), added = product(heads, weights.at("decoder.0.self_attention.w_o"));
    add(added, "decoder.0.self_attention.b_o");
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[i].size(); ++j) x[i][j] += added[i][j];
    }
    const auto logits =
        product({norm(x, "decoder.final_norm").back()}, weights.transposed_at("embedding"))[0];
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    return {.answer = logits[static_cast<size_t>(answer)] - std::log(sum),
            .wrong = logits[static_cast<size_t>(wrong)] - std::log(sum)};
  }
};

TEST(Patch, ThreeTokensAreAsCalculatedInFloat64) {
  CausalConfig config = test::gpt_config();
  config.stack.layers = {
      {.self_attention = {.heads = 2, .d_key = 3, .d_value = 5}, .feed_forward = {.d_ff = 7}}};
  ModelFolder folder = folder_of(test::family_causal(config, 17).model, "gpt2");
  folder.model->visit(ParameterVisitor([](const std::string& name, Parameter& parameter) {
    if (name.find("feed_forward.") == std::string::npos) return;
    parameter.value.fill(0);  // of the layer only the attention is left
    parameter.changed();
  }));
  const HandModel hand(*folder.model);
  const PatchReport patching = heads_patch(
      folder, {.clean = "two dogs see", .corrupt = "two cats see", .answer = "park", .wrong = "small"});
  const std::vector<int32_t> clean = patching.texts.clean.ids, corrupt = patching.texts.corrupt.ids;
  ASSERT_EQ(clean.size(), 3u);
  const int32_t answer = *patching.texts.answer.token, wrong = *patching.texts.wrong.token;
  const HandModel::Rows of_clean = hand.heads(clean, 2), of_corrupt = hand.heads(corrupt, 2);
  const AnswerScores a = hand.scores(clean, of_clean, answer, wrong),
                     b = hand.scores(corrupt, of_corrupt, answer, wrong);
  EXPECT_NEAR(patching.clean.answer, a.answer, 1e-5);
  EXPECT_NEAR(patching.clean.wrong, a.wrong, 1e-5);
  EXPECT_NEAR(patching.corrupt.answer, b.answer, 1e-5);
  ASSERT_EQ(patching.values.size(), 2u);
  for (size_t h = 0; h < 2; ++h) {
    HandModel::Rows mixed = of_corrupt;
    for (size_t i = 0; i < 3; ++i) {
      for (size_t c = 5 * h; c < 5 * (h + 1); ++c) mixed[i][c] = of_clean[i][c];
    }
    const double score = hand.scores(corrupt, mixed, answer, wrong).score();
    EXPECT_NEAR(patching.values[h].scores.score(), score, 2e-5);
    EXPECT_NEAR(patching.values[h].restored, (score - b.score()) / (a.score() - b.score()), 1e-4);
  }
}
}  // namespace
}  // namespace mh
