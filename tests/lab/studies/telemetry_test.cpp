// How similar heads are, of heads whose weights and values are known.
#include "lab/studies/telemetry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <numbers>
#include <vector>

#include "tests/support/small_model.h"

namespace mh {
namespace {

constexpr double kHalf = 0.5, kHeight = std::numbers::sqrt3 / 2;  // of an angle of 120 degrees

/// One encoder layer of heads of size 2.
EncoderDecoderConfig config_of(int heads) {
  EncoderDecoderConfig config = small_config();
  config.d_model = 2 * heads;
  config.encoder_layers = config.decoder_layers = 1;
  config.encoder_heads = config.decoder_heads = heads;
  return config;
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
  EncoderDecoder model(config_of(static_cast<int>(values.size())));
  return head_telemetry(even_heads(model, values), corpus_of({{3, 4, 5, kEnd}, {6, kEnd}}));
}

TEST(HeadTelemetry, OfEqualHeads) {
  EncoderDecoderConfig config = config_of(4);
  config.geometry.initialisation = HeadInitialisation::kEqual;
  EncoderDecoder model(config);
  model.initialise(3);
  const HeadTelemetry heads = head_telemetry(model, corpus_of(random_sources(1, {5, 3, 7})));
  EXPECT_NEAR(heads.subspace, 1, 1e-6);
  EXPECT_NEAR(heads.output, 1, 1e-6);
  EXPECT_NEAR(heads.distance(), 0, 1e-6);
  EXPECT_NEAR(heads.divergence, 0, 1e-6);
  EXPECT_NEAR(heads.effective, 1, 1e-5);
}

TEST(HeadTelemetry, OfHeadsThatReadAllRowsAlike) {
  const HeadTelemetry heads = of_even_heads({{1, 0}, {1, 0}});
  EXPECT_NEAR(heads.entropy, 1, 1e-6);
  EXPECT_NEAR(heads.divergence, 0, 1e-6);
  // A query's weights are 1/T: the sum over keys of the product of two is 1/T; sentences of 4 and of 2 tokens.
  EXPECT_NEAR(heads.positions, (1.0 / 4 + 1.0 / 2) / 2, 1e-6);
}

TEST(HeadTelemetry, OfValuesAtRightAngles) {
  const HeadTelemetry heads = of_even_heads({{3, 0}, {0, 0.5}});
  EXPECT_NEAR(heads.subspace, 0, 1e-6);
  EXPECT_NEAR(heads.output, 0, 1e-6);
  EXPECT_NEAR(heads.distance(), 1, 1e-6);
  EXPECT_NEAR(heads.effective, 2, 1e-6);
}

TEST(HeadTelemetry, OfFourHeadsOfWhichPairsAreEqual) {
  // Of six pairs two have cosine 1, four have 0; the eigenvalues of the cosine matrix are 2, 2, 0, 0.
  const HeadTelemetry heads = of_even_heads({{1, 0}, {0, 1}, {2, 0}, {0, 2}});
  EXPECT_NEAR(heads.output, 1.0 / 3, 1e-6);
  EXPECT_NEAR(heads.distance(), 2.0 / 3, 1e-6);
  EXPECT_NEAR(heads.effective, 2, 1e-6);
}

TEST(HeadTelemetry, TheDistanceGoesOnGrowingWhereTheEffectiveNumberTurns) {
  const HeadTelemetry right = of_even_heads({{1, 0}, {0, 1}}), opposite = of_even_heads({{1, 0}, {-2, 0}});
  EXPECT_NEAR(opposite.output, -1, 1e-6);
  EXPECT_NEAR(opposite.effective, 1, 1e-5) << "as for equal heads";
  EXPECT_NEAR(opposite.distance(), 2, 1e-6);
  EXPECT_GT(opposite.distance(), right.distance());
  // Three at 120 degrees: all cosines -1 / (h - 1), the eigenvalues 3/2, 3/2, 0.
  const HeadTelemetry three = of_even_heads({{1, 0}, {-kHalf, kHeight}, {-kHalf, -kHeight}});
  EXPECT_NEAR(three.output, -0.5, 1e-6);
  EXPECT_NEAR(three.effective, 2, 1e-5);
  EXPECT_NEAR(three.distance(), 3.0 / 2, 1e-6) << "h / (h - 1), its largest";
}

TEST(HeadTelemetry, OfHeadsThatReadDifferentRows) {
  // Two tokens, whose rows are 1000 and -1000 in their first column, far above the positions'. Head 0 reads both
  // alike, head 1 only the row of token 3.
  EncoderDecoder model(config_of(2));
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

TEST(HeadTelemetry, IsOfSoManySentencesAndOfNoneNothing) {
  EncoderDecoder model(config_of(2));
  even_heads(model, {{1, 0}, {0, 1}});
  const TrainingCorpus corpus = corpus_of({{3, 4, 5, kEnd}, {6, kEnd}});
  EXPECT_NEAR(head_telemetry(model, corpus, 1).positions, 1.0 / 4, 1e-6);
  const HeadTelemetry none = head_telemetry(model, corpus_of({}));
  EXPECT_EQ(none.output, 0);
  EXPECT_EQ(none.effective, 0);
}

}  // namespace
}  // namespace mh
