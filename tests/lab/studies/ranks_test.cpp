// What the studies read of trained weights, and do to them: truncation of W_i = W_i^Q W_i^K^T to a rank, and how
// evenly heads read a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/studies/diversity/claims.h"
#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/nn/layer_weights.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using lab::Matrix;
using two_matrices_or_one::truncate;

constexpr int kRankHeads = 4, kKey = 5, kRankModel = kRankHeads * kKey;

EncoderDecoderConfig config_of_heads() {
  EncoderDecoderConfig config = small_config();
  config.encoder_layers = config.decoder_layers = 1;
  config.encoder_heads = config.decoder_heads = kRankHeads;
  return config;
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
  for (const auto& [name, heads] : model.attentions()) {
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
    EncoderDecoder model(config_of_heads());
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
    EncoderDecoder model(config_of_heads());
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

TEST(Truncate, LeavesValuesAndOutputsAlone) {
  EncoderDecoder model(config_of_heads());
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

/// Every W^Q, W^K and W^V has these numbers; other parameters stay as they are.
EncoderDecoder& with_rows(EncoderDecoder& model,
                          const std::function<double(int64_t row, int64_t column)>& number) {
  model.initialise(7);
  model.visit([&](const std::string& name, Parameter& p) {
    if (!name.ends_with("attention.w_q") && !name.ends_with("attention.w_k") &&
        !name.ends_with("attention.w_v"))
      return;
    for (int64_t i = 0; i < p.value.rows(); ++i) {
      for (int64_t j = 0; j < p.value.cols(); ++j) p.value(i, j) = static_cast<float>(number(i, j));
    }
    p.changed();
  });
  return model;
}

TEST(Evenness, Is1WhereAllRowsWeighTheSame) {
  EncoderDecoder model(config_of_heads());
  EXPECT_NEAR(diversity::evenness(with_rows(model, [](int64_t, int64_t) { return 0.25; }), kRankHeads), 1,
              1e-6);
  // Rows of one norm, whatever is in them; heads of other size.
  const auto turned = [](int64_t i, int64_t j) {
    return (j % kKey == i % kKey ? 2.0 : 0.0) * static_cast<double>(1 + j / kKey);
  };
  EXPECT_NEAR(diversity::evenness(with_rows(model, turned), kRankHeads), 1, 1e-6);
}

TEST(Evenness, IsTheShareOfTheRowsThatAHeadReads) {
  EncoderDecoder model(config_of_heads());
  for (const int read : {1, 4, 10, 19}) {
    const auto first = [=](int64_t i, int64_t) { return i < read ? 0.5 : 0; };
    EXPECT_NEAR(diversity::evenness(with_rows(model, first), kRankHeads),
                static_cast<double>(read) / kRankModel, 1e-6);
    // Each head rows of its own.
    const auto own = [=](int64_t i, int64_t j) {
      return (i + kKey * (j / kKey)) % kRankModel < read ? 0.5 : 0;
    };
    EXPECT_NEAR(diversity::evenness(with_rows(model, own), kRankHeads),
                static_cast<double>(read) / kRankModel, 1e-6);
  }
}

TEST(Evenness, IsTheMeanOverHeads) {
  EncoderDecoder model(config_of_heads());
  // Head 0 reads all 20 rows, the others 5 each.
  const auto rows = [](int64_t i, int64_t j) { return j < kKey || i < 5 ? 1.0 : 0.0; };
  EXPECT_NEAR(diversity::evenness(with_rows(model, rows), kRankHeads), (1 + 3 * 0.25) / 4, 1e-6);
}

TEST(Evenness, OfUnequalRowsIsBetween) {
  EncoderDecoder model(config_of_heads());
  // Squares 1 and 3 of half the rows each: (1 + 3)^2 / (2 (1 + 9)).
  const auto rows = [](int64_t i, int64_t) { return i % 2 == 0 ? 1.0 : std::sqrt(3.0); };
  EXPECT_NEAR(diversity::evenness(with_rows(model, rows), kRankHeads), 16.0 / 20, 1e-6);
}

}  // namespace
}  // namespace mh
