// How similar heads are, of heads whose weights and values are known.
#include "lab/studies/telemetry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/context.h"
#include "multihead/nn/disagreement.h"
#include "tests/support/small_model.h"
#include "tests/support/turned_heads.h"

namespace mh {
namespace {

/// One encoder layer of heads of size 2.
TranslatorShape config_of(int heads) {
  TranslatorShape shape = small_shape();
  shape.d_model = 2 * heads;
  shape.encoder_layers = shape.decoder_layers = 1;
  shape.encoder_heads = shape.decoder_heads = heads;
  return shape;
}

void set(EncoderDecoder& model, const std::string& wanted,
         const std::function<double(int64_t row, int64_t column)>& number) {
  bool found = false;
  model.visit([&](const std::string& name, Parameter& parameter) {
    if (!name.ends_with(wanted)) return;
    if (wanted.find('.') == std::string::npos ? name != wanted : name.find("encoder.0") == std::string::npos)
      return;
    found = true;
    const MatrixView view = parameter.value.view();
    for (int64_t i = 0; i < view.rows; ++i) {
      for (int64_t j = 0; j < view.cols; ++j) view(i, j) = static_cast<float>(number(i, j));
    }
    parameter.changed();
  });
  ASSERT_TRUE(found) << wanted;
}

double zero(int64_t, int64_t) {
  return 0;
}

/// Every head reads all rows alike; the values of head i are values[i] at every row.
EncoderDecoder& even_heads(EncoderDecoder& model, const std::vector<std::vector<double>>& values) {
  model.initialise(5);
  set(model, "self_attention.w_q", zero);
  set(model, "self_attention.b_q", zero);
  set(model, "self_attention.w_v", zero);
  set(model, "self_attention.b_v",
      [&](int64_t, int64_t j) { return values[static_cast<size_t>(j / 2)][static_cast<size_t>(j % 2)]; });
  return model;
}

TrainingCorpus corpus_of(std::vector<std::vector<int32_t>> sources) {
  TrainingCorpus corpus;
  corpus.tokens.target = sources;
  corpus.tokens.source = std::move(sources);
  return corpus;
}

HeadTelemetry of_even_heads(const std::vector<std::vector<double>>& values) {
  EncoderDecoder model(config_of(static_cast<int>(values.size())).config());
  return head_telemetry(even_heads(model, values), corpus_of({{3, 4, 5, kEnd}, {6, kEnd}}));
}

TEST(HeadTelemetry, OfEqualHeads) {
  TranslatorShape shape = config_of(4);
  shape.geometry.initialisation = HeadInitialisation::kEqual;
  EncoderDecoder model(shape.config());
  model.initialise(3);
  const HeadTelemetry heads = head_telemetry(model, corpus_of(random_sources(1, {5, 3, 7})));
  EXPECT_NEAR(heads.written.value(), 1, 1e-6);
  EXPECT_NEAR(heads.divergence, 0, 1e-6);
  EXPECT_NEAR(heads.ratio.value(), 0, 1e-6);
}

TEST(HeadTelemetry, OfHeadsThatReadAllRowsAlike) {
  const HeadTelemetry heads = of_even_heads({{1, 0}, {1, 0}});
  EXPECT_NEAR(heads.entropy, 1, 1e-6);
  EXPECT_NEAR(heads.divergence, 0, 1e-6);
  // A query's weights are 1/T: the sum over keys of the product of two is 1/T; sentences of 4 and of 2 tokens.
  EXPECT_NEAR(heads.positions, (1.0 / 4 + 1.0 / 2) / 2, 1e-6);
}

TEST(HeadTelemetry, WhatHeadsWriteIsComparedBehindWO) {
  // Every row of head 0 is (3, 0) W_0^O, that of head 1 (0, 0.5) W_1^O, that of head 2 (0, -2) W_2^O.
  EncoderDecoder model(config_of(3).config());
  even_heads(model, {{3, 0}, {0, 0.5}, {0, -2}});
  const double rows[6][2] = {{2, 0}, {7, 7}, {5, 5}, {0, 4}, {5, 5}, {4, 3}};  // the first two columns of W^O
  set(model, "self_attention.w_o", [&](int64_t i, int64_t j) { return j < 2 ? rows[i][j] : 0; });
  const HeadTelemetry heads = head_telemetry(model, corpus_of({{3, 4, 5, kEnd}, {6, kEnd}}));
  // Cosines of (2, 0), (0, 4) and (-4, -3): 0, -4/5, -3/5. In the bases of their values the last two are opposite.
  EXPECT_NEAR(heads.written.value(), (0 - 0.8 - 0.6) / 3, 1e-6);
}

TEST(HeadTelemetry, OneHeadHasNoOtherToBeLike) {
  EncoderDecoder model(config_of(1).config());
  model.initialise(3);
  const HeadTelemetry heads = head_telemetry(model, corpus_of(random_sources(1, {5, 3})));
  EXPECT_EQ(heads.written, 0);
  EXPECT_FALSE(heads.ratio);
}

TEST(HeadTelemetry, TheRatioIsTheDivergenceOverThatOfRowsThatWerePermuted) {
  // Heads as sharp that read anything: near 1. Two sharp heads that read the same row: near 0.
  EncoderDecoder model(config_of(4).config());
  model.initialise(7);
  sharpen(model, 3);
  const TrainingCorpus corpus = corpus_of(random_sources(11, {13, 17, 11, 19}));
  const HeadTelemetry any = head_telemetry(model, corpus);
  EXPECT_NEAR(any.ratio.value(), 1, 0.2);
  EXPECT_GT(any.divergence, 0.01);
  for (const char* part : {"self_attention.w_q", "self_attention.w_k"})
    set(model, part, [](int64_t i, int64_t j) { return i % 2 == j % 2 ? 3 : 0.1 * static_cast<double>(i); });
  EXPECT_LT(head_telemetry(model, corpus).ratio.value(), 0.1) << "all heads have the same queries and keys";
}

TEST(HeadTelemetry, OfHeadsThatReadDifferentRows) {
  // Two tokens, whose rows are 1000 and -1000 in their first column, far above the positions'. Head 0 reads both
  // alike, head 1 only the row of token 3.
  EncoderDecoder model(config_of(2).config());
  even_heads(model, {{1, 0}, {0, 1}});
  set(model, "embedding", [](int64_t token, int64_t j) { return j > 0 ? 0 : token == 3 ? 1000 : -1000; });
  set(model, "self_attention.b_q", [](int64_t, int64_t j) { return j == 2 ? 1 : 0; });
  set(model, "self_attention.w_k", [](int64_t i, int64_t j) { return i == 0 && j == 2 ? 1 : 0; });
  set(model, "self_attention.b_k", zero);
  const HeadTelemetry heads = head_telemetry(model, corpus_of({{3, kEnd}}));
  EXPECT_NEAR(heads.positions, 0.5, 1e-6);  // 1/2 * 1 + 1/2 * 0
  EXPECT_NEAR(heads.entropy, 0.5, 1e-6);    // of head 0: 1, of head 1: 0
  // H(3/4, 1/4) - (H(1/2, 1/2) + H(1, 0)) / 2
  const double mixed = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  EXPECT_NEAR(heads.divergence, mixed - std::log(2) / 2, 1e-6);
}

/// The similarities of a regulariser on some sentences.
double penalised(const EncoderDecoder& model, Disagreement form) {
  const Batch source(random_sources(1, {5, 3, 7})), target(random_sources(2, {4, 6, 5}));
  HeadSimilarities similarities(form);
  Tape tape;
  Context context{.tape = tape, .sites = &similarities};
  model.read(context, source.view(), target.view());
  return similarities.mean();
}

// No measure changes where the model's outputs do not. The cosines of Li et al. 2018, which runs were measured by once and
// which are penalties of `train`, do.
TEST(HeadTelemetry, StaysWhereOutputsDo) {
  TranslatorShape shape = config_of(4);
  shape.encoder_layers = 2;
  EncoderDecoder model(shape.config());
  model.initialise(7);
  sharpen(model, 2);
  Random random(3);
  model.visit([&](const std::string& name, Parameter& p) {
    if (name.find("attention.b_") == std::string::npos) return;
    for (int64_t i = 0; i < p.value.size(); ++i) p.value.data()[i] = static_cast<float>(random.normal());
    p.changed();
  });
  const TrainingCorpus corpus = corpus_of(random_sources(11, {5, 3, 7}));
  const HeadTelemetry before = head_telemetry(model, corpus);
  const double subspace = penalised(model, {.subspace = true}), output = penalised(model, {.output = true}),
               positions = penalised(model, {.positions = true}),
               written = penalised(model, {.written = true});
  test::turn_heads(model, 5);
  const HeadTelemetry after = head_telemetry(model, corpus);
  EXPECT_NEAR(after.positions, before.positions, 1e-5);
  EXPECT_NEAR(after.divergence, before.divergence, 1e-5);
  EXPECT_NEAR(after.entropy, before.entropy, 1e-5);
  EXPECT_NEAR(after.written.value(), before.written.value(), 1e-5);
  EXPECT_NEAR(after.ratio.value(), before.ratio.value(), 1e-4);
  EXPECT_NEAR(after.distance.value(), before.distance.value(), 1e-5);
  EXPECT_NEAR(penalised(model, {.positions = true}), positions, 1e-4);
  EXPECT_NEAR(penalised(model, {.written = true}), written, 1e-4);
  EXPECT_GT(std::abs(penalised(model, {.subspace = true}) - subspace), 1e-3);
  EXPECT_GT(std::abs(penalised(model, {.output = true}) - output), 1e-3);
}

TEST(HeadTelemetry, IsOfSoManySentencesAndOfNoneNothing) {
  EncoderDecoder model(config_of(2).config());
  even_heads(model, {{1, 0}, {0, 1}});
  const TrainingCorpus corpus = corpus_of({{3, 4, 5, kEnd}, {6, kEnd}});
  EXPECT_NEAR(head_telemetry(model, corpus, 1).positions, 1.0 / 4, 1e-6);
  const HeadTelemetry none = head_telemetry(model, corpus_of({}));
  EXPECT_EQ(none.written, 0);
  EXPECT_EQ(none.entropy, 0);
  EXPECT_FALSE(none.ratio);
}

TEST(HeadDistance, IsThatOfTheFormula) {
  EncoderDecoder model(config_of(3).config());  // d_model 6, heads of 2
  model.initialise(1);
  // Head i scores with factor(i) times one matrix, so its distance from head j is |f_i - f_j| / sqrt(f_i^2 + f_j^2).
  const auto factor = [](int64_t j) { return std::vector<double>{1, 2, -3}[static_cast<size_t>(j / 2)]; };
  set(model, "self_attention.w_q",
      [&](int64_t i, int64_t j) { return factor(j) * static_cast<double>(i + 1) * (j % 2 ? .5 : 1); });
  set(model, "self_attention.w_k",
      [](int64_t i, int64_t j) { return static_cast<double>(i * i - 2) * (j % 2 ? -1 : .25); });
  const double expected = (1 / std::sqrt(5.0) + 4 / std::sqrt(10.0) + 5 / std::sqrt(13.0)) / 3;
  EXPECT_NEAR(head_distance(model).value(), expected, 1e-6);
}

TEST(HeadDistance, IsOneOfUnrelatedHeadsAndNoneOfOtherScores) {
  TranslatorShape shape = config_of(4);
  shape.d_model = 64;
  shape.encoder_layers = 2;
  EncoderDecoder model(shape.config());
  model.initialise(5);
  EXPECT_NEAR(head_distance(model).value(), 1, 0.05);
  shape.geometry.scores = Scores::kTied;
  EXPECT_FALSE(head_distance(EncoderDecoder(shape.config())));
  EXPECT_FALSE(head_distance(EncoderDecoder(config_of(1).config()))) << "one head has no other";
}

}  // namespace
}  // namespace mh
