// What the studies do to trained weights: truncation of W_i = W_i^Q W_i^K^T to a rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/layer_weights.h"
#include "tests/support/small_model.h"
#include "tests/support/turned_heads.h"

namespace mh {
namespace {

using lab::Matrix;
using two_matrices_or_one::truncate;

constexpr int kRankHeads = 4, kKey = 5, kRankModel = kRankHeads * kKey;

TranslatorShape config_of_heads() {
  TranslatorShape shape = small_shape();
  shape.encoder_layers = shape.decoder_layers = 1;
  shape.encoder_heads = shape.decoder_heads = kRankHeads;
  return shape;
}

/// Random weights, and random biases in the place of zeros.
EncoderDecoder& random_weights(EncoderDecoder& model, uint64_t seed) {
  model.initialise(seed);
  Random random(seed);
  model.visit([&](const std::string& name, Parameter& p) {
    if (name.find("attention.b_") == std::string::npos) return;
    for (int64_t i = 0; i < p.value.size(); ++i) p.value.data()[i] = static_cast<float>(random.normal());
    p.changed();
  });
  sharpen(model, 2);
  return model;
}

/// Of every head of every attention, by "encoder.0.self_attention 2": W_i^Q W_i^K^T [d, d] and b_i^Q W_i^K^T [1, d],
/// which is all that its weights depend on: what b_i^K adds to a row of scores is the same for all keys.
struct HeadScores {
  Matrix rows, bias;
};
std::map<std::string, HeadScores> scores_of(EncoderDecoder& model) {
  std::map<std::string, HeadScores> found;
  for (const auto& [name, heads, place] : model.attentions()) {
    const LayerWeights layer = weights_of(model.attention(name), kRankModel);
    for (int h = 0; h < heads; ++h) {
      const HeadMatrix q = head_matrix(layer, HeadPart::kQueries, h),
                       k = head_matrix(layer, HeadPart::kKeys, h);
      found[name + " " + std::to_string(h)] = {lab::product_transposed(q.weight, k.weight),
                                               lab::product_transposed(q.bias, k.weight)};
    }
  }
  return found;
}

/// The last states [N, d_model].
Matrix states_of(const EncoderDecoder& model) {
  const auto sources = random_sources(3, {7, 4, 9}), targets = random_sources(4, {5, 8, 6});
  const Batch source(sources), target(targets);
  Tape tape;
  Context context{.tape = tape};
  return in_double(model.states(context, source.view(), target.view()).value());
}

TEST(Truncate, ToAllOfTheRankChangesNothing) {
  for (const int rank : {kKey, kKey + 3}) {
    EncoderDecoder model(config_of_heads().config());
    random_weights(model, 1);
    const Matrix states = states_of(model);
    const auto before = scores_of(model);
    ASSERT_EQ(before.size(), 3u * kRankHeads);
    truncate(model, kRankHeads, rank);
    for (const auto& [head, scores] : scores_of(model)) {
      EXPECT_LE(lab::largest_difference(scores.rows, before.at(head).rows), 1e-4) << head;
      EXPECT_LE(lab::largest_difference(scores.bias, before.at(head).bias), 1e-4) << head;
    }
    EXPECT_GT(lab::largest(states), 0.1);
    EXPECT_LE(lab::largest_difference(states_of(model), states), 1e-4);
  }
}

TEST(Truncate, GivesTheNearestMatrixOfTheRank) {
  for (int rank = 1; rank < kKey; ++rank) {
    SCOPED_TRACE(rank);
    EncoderDecoder model(config_of_heads().config());
    random_weights(model, 2);
    const Matrix states = states_of(model);
    const auto before = scores_of(model);
    truncate(model, kRankHeads, rank);
    EXPECT_GT(lab::largest_difference(states_of(model), states), 1e-3);
    for (const auto& [head, scores] : scores_of(model)) {
      SCOPED_TRACE(head);
      const Svd whole = svd(before.at(head).rows.view()), cut = svd(scores.rows.view());
      EXPECT_EQ(numeric_rank(cut.values), rank);
      EXPECT_LE(lab::largest_difference(scores.rows, whole.of_rank(rank)), 1e-4);
      double lost = 0;
      for (size_t n = 0; n < whole.values.size(); ++n) {
        if (n >= static_cast<size_t>(rank)) {
          lost += whole.values[n] * whole.values[n];
        } else {
          EXPECT_NEAR(cut.values[n], whole.values[n], 1e-4);
        }
      }
      // Eckart and Young 1936: the distance is that of the singular values that are lost.
      EXPECT_NEAR(lab::norm(lab::sum(before.at(head).rows, scores.rows, -1)), std::sqrt(lost), 1e-4);
      // b W^K^T is as near as the rows of the new W^K^T come: the rest is at right angles to them.
      const Matrix rest = lab::sum(before.at(head).bias, scores.bias, -1);
      EXPECT_LE(lab::largest(lab::product_transposed(rest, scores.rows)), 1e-3);
    }
  }
}

// The rank of W_i is not one of W^Q and W^K: heads in other bases are cut to the same scores.
TEST(Truncate, IsOfTheScoresAndNotOfABasis) {
  EncoderDecoder model(config_of_heads().config()), turned(config_of_heads().config());
  test::turn_heads(random_weights(turned, 2), 5);
  truncate(random_weights(model, 2), kRankHeads, 3);
  truncate(turned, kRankHeads, 3);
  EXPECT_LE(lab::largest_difference(states_of(model), states_of(turned)), 1e-4);
  const auto expected = scores_of(model);
  for (const auto& [head, scores] : scores_of(turned)) {
    EXPECT_LE(lab::largest_difference(scores.rows, expected.at(head).rows), 1e-4) << head;
    EXPECT_LE(lab::largest_difference(scores.bias, expected.at(head).bias), 1e-4) << head;
  }
}

TEST(Truncate, LeavesValuesAndOutputsAlone) {
  EncoderDecoder model(config_of_heads().config());
  random_weights(model, 5);
  std::map<std::string, Matrix> before;
  model.visit([&](const std::string& name, Parameter& p) { before[name] = in_double(p.value.view()); });
  truncate(model, kRankHeads, 2);
  int changed = 0;
  model.visit([&](const std::string& name, Parameter& p) {
    const bool of_scores = name.ends_with("attention.w_q") || name.ends_with("attention.w_k") ||
                           name.ends_with("attention.b_q") || name.ends_with("attention.b_k");
    if (of_scores) ++changed;
    const double difference = lab::largest_difference(in_double(p.value.view()), before.at(name));
    EXPECT_EQ(difference == 0, !of_scores) << name;
  });
  EXPECT_EQ(changed, 4 * 3);
}

}  // namespace
}  // namespace mh
