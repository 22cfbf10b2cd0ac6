// For every geometry, the steps of a trace compute what the layer computes, and each step is what its
// formula says.
#include "multihead/heads/reports/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/initialise.h"
#include "multihead/tensor/linear_algebra.h"
#include "tests/support/goldens.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor random_rows(int64_t rows, int64_t cols, uint64_t seed) {
  Random random(seed);
  Parameter x(rows, cols);
  fill_normal(x, random, 1);
  return x.value.tensor();
}

struct TracedLayer {
  TracedLayer(const HeadGeometry& geometry, int d_model, Positions positions = Positions::kNone)
      : layer("layer", {.d_model = d_model, .geometry = geometry, .positions = positions}, streams) {
    Random random(5);
    layer.initialise(random);
    layer.visit("", [&](const std::string& name, Parameter& p) {
      if (name[1] == 'b' || name[1] == 'c' || name.find("mixing_of") == 1 || name == ".head_norm")
        fill_normal(p, random, 0.5);
    });
  }
  DropoutStreams streams;
  MultiHeadAttention layer;
};

DoubleMatrix product_of(const Tensor& a, const Tensor& b) {
  return product(in_double(a.view()).view(), in_double(b.view()).view());
}
void expect_near(const Tensor& found, const DoubleMatrix& expected) {
  ASSERT_EQ(found.rows(), expected.rows());
  ASSERT_EQ(found.cols(), expected.cols());
  for (int64_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found.data()[i], expected.data()[i], 1e-5) << i;
}

std::vector<std::string> names_of(const AttentionTrace& trace) {
  std::vector<std::string> names;
  for (const TraceStep& step : trace.steps) names.push_back(step.name);
  return names;
}

TEST(Trace, WalksThroughACanonicalLayer) {
  TracedLayer made({.heads = 2, .d_key = 3}, 5);
  const Tensor x = random_rows(4, 5, 3), none;
  const AttentionTrace trace = trace_attention(made.layer, x.view(), none.view(), Mask::none());
  EXPECT_THAT(
      names_of(trace),
      ElementsAre("x", "w_q_0", "b_q_0", "w_k_0", "b_k_0", "w_v_0", "b_v_0", "q_0", "k_0", "v_0", "scores_0",
                  "scaled_0", "weights_0", "z_0", "w_q_1", "b_q_1", "w_k_1", "b_k_1", "w_v_1", "b_v_1", "q_1",
                  "k_1", "v_1", "scores_1", "scaled_1", "weights_1", "z_1", "z", "w_o", "b_o", "output"));
  EXPECT_EQ(trace.step("q_1").formula, "x w_q_1 + b_q_1");
  EXPECT_EQ(trace.step("q_1").owner, "head 1");
  EXPECT_EQ(trace.step("w_q_1").formula, "learned: columns 3 ... 5 of w_q");
  EXPECT_EQ(trace.step("scores_1").formula, "q_1 k_1^T");
  EXPECT_EQ(trace.step("output").owner, "all heads");

  // Each step is what its formula says of the steps before.
  DoubleMatrix q = product_of(x, trace.step("w_q_1").value);
  for (int64_t i = 0; i < q.rows(); ++i) {
    for (int64_t j = 0; j < q.cols(); ++j) q(i, j) += trace.step("b_q_1").value(0, j);
  }
  expect_near(trace.step("q_1").value, q);
  const Tensor& k = trace.step("k_1").value;
  DoubleMatrix scores = product(in_double(trace.step("q_1").value.view()).view(),
                                transposed(in_double(k.view()).view()).view());
  expect_near(trace.step("scores_1").value, scores);
  for (int64_t i = 0; i < scores.rows(); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < scores.cols(); ++j) sum += scores(i, j) = std::exp(scores(i, j) / std::sqrt(3));
    for (int64_t j = 0; j < scores.cols(); ++j) scores(i, j) /= sum;
  }
  expect_near(trace.step("weights_1").value, scores);
  expect_near(trace.step("z_1").value, product_of(trace.step("weights_1").value, trace.step("v_1").value));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(trace.step("z").value(i, 4), trace.step("z_1").value(i, 1));
  DoubleMatrix output = product_of(trace.step("z").value, trace.step("w_o").value);
  for (int64_t i = 0; i < output.rows(); ++i) {
    for (int64_t j = 0; j < output.cols(); ++j) output(i, j) += trace.step("b_o").value(0, j);
  }
  expect_near(trace.step("output").value, output);
}

TEST(Trace, EveryGeometryIsTheLayerItself) {
  for (const GeometryName& name : geometry_names()) {
    for (const bool own_rows : {true, false}) {
      const HeadGeometry geometry = geometry_preset(name.name, 4, 12);
      TracedLayer made(geometry, 12);
      const Tensor x = random_rows(5, 12, 3), memory = own_rows ? Tensor() : random_rows(7, 12, 4);
      const AttentionTrace trace = trace_attention(made.layer, x.view(), memory.view(), Mask::none());
      EXPECT_LT(trace.difference, 1e-5 * trace.magnitude) << name.name;
      EXPECT_GT(trace.magnitude, 0.01) << name.name;
      EXPECT_EQ(trace.step("output").value.cols(), 12);
      EXPECT_EQ(trace.step("weights_3").value.cols(), own_rows ? 5 : 7);
    }
  }
}

TEST(Trace, SaysWhatHeadsShare) {
  const Tensor x = random_rows(3, 12, 3), none;
  const auto walk = [&](const HeadGeometry& geometry) {
    TracedLayer made(geometry, 12);
    return trace_attention(made.layer, x.view(), none.view(), Mask::none());
  };
  const AttentionTrace groups = walk({.heads = 4, .key_heads = 2});
  EXPECT_EQ(groups.step("k_2").owner, "heads 2, 3");
  EXPECT_EQ(groups.step("w_v_2").owner, "heads 2, 3");
  EXPECT_EQ(groups.step("scores_3").formula, "q_3 k_2^T");
  EXPECT_THAT([&] { groups.step("k_3"); },
              ThrowsMessage<UsageError>(HasSubstr("no step 'k_3'; it has x, w_q_0")));
  const AttentionTrace merged = walk({.heads = 2, .scores = Scores::kMerged});
  EXPECT_EQ(merged.step("q_1").formula, "x w_qk_1 + c_qk_1");
  EXPECT_EQ(merged.step("k_0").formula, "x");
  EXPECT_EQ(merged.step("k_0").owner, "all heads");
  const AttentionTrace collaborative = walk({.heads = 2, .scores = Scores::kCollaborative});
  EXPECT_EQ(collaborative.step("q_1").formula, "(x w_q + b_q) * mixing_1");
  EXPECT_EQ(collaborative.step("w_q").owner, "all heads");
  const AttentionTrace sliced = walk({.heads = 3, .input = HeadInput::slices(), .biases = Biases::kNone});
  EXPECT_EQ(sliced.step("v_2").formula, "x[:, 8 ... 11] w_v_2");
  const AttentionTrace fourth = walk({.heads = 3, .input = HeadInput::projected_slices(true)});
  EXPECT_EQ(fourth.step("q_1").formula, "(x w_before_q)[:, 4 ... 7] w_q + b_q_1");
  EXPECT_EQ(walk({.heads = 2, .scores = Scores::kTied}).step("k_1").formula, "x w_q_1 + b_q_1");
  EXPECT_EQ(walk({.heads = 2, .scores = Scores::kDoubled}).step("k_1").formula, "x w_before_k w_k_1 + b_k_1");
}

TEST(Trace, ShowsRotaryPositionsAndNorms) {
  const Tensor x = random_rows(5, 12, 3), none;
  TracedLayer rotary({.heads = 2}, 12, Positions::kRotary);
  const AttentionTrace trace = trace_attention(rotary.layer, x.view(), none.view(), Mask::causal());
  EXPECT_EQ(trace.step("scores_1").formula, "q_1_turned k_1_turned^T");
  const Tensor &before = trace.step("k_1").value, &turned = trace.step("k_1_turned").value;
  EXPECT_NEAR(turned(0, 2), before(0, 2), 1e-5);  // the first place turns nothing
  EXPECT_GT(std::abs(turned(3, 2) - before(3, 2)), 1e-3);
  TracedLayer normed({.heads = 2, .query_key_norm = QueryKeyNorm::kL2}, 12);
  const AttentionTrace cosines = trace_attention(normed.layer, x.view(), none.view(), Mask::none());
  EXPECT_EQ(cosines.step("q_0").formula, "score_factor (x w_q_0 + b_q_0) / its length");
  EXPECT_EQ(cosines.step("scaled_0").formula, "1 scores_0");
}

TEST(Trace, ShowsWhichNormRunsOverAllHeads) {
  TracedLayer normed({.heads = 2, .query_key_norm = QueryKeyNorm::kRmsRow, .biases = Biases::kNone}, 12);
  const AttentionTrace trace =
      trace_attention(normed.layer, random_rows(5, 12, 3).view(), {}, Mask::causal());
  EXPECT_EQ(trace.step("k_1").formula,
            "its part of key_norm (x w_k_1) / the root mean square of all heads' keys");
  EXPECT_EQ(trace.step("key_norm").value.cols(), 12);
  EXPECT_EQ(trace.step("k_1").value.cols(), 6);
}

TEST(Trace, SaysWhatMultipliesTheNumbersThatTurn) {
  const Tensor x = random_rows(5, 12, 3), none;
  const auto check = [&](RotaryScaling::Kind kind, std::vector<double> factors, const std::string& name) {
    DropoutStreams streams;
    MultiHeadAttention layer("layer",
                             {.d_model = 12,
                              .geometry = {.heads = 2},
                              .positions = Positions::kRotary,
                              .rotary = {.rotated = 4,
                                         .scaling = {.kind = kind, .factor = 4, .amplitude = 1.25},
                                         .factors = std::move(factors)}},
                             streams);
    Random random(7);
    layer.initialise(random);
    const AttentionTrace trace = trace_attention(layer, x.view(), none.view(), Mask::causal());
    EXPECT_EQ(trace.step("k_1_turned").formula,
              "k_1, pairs of its first 4 numbers turned by the row's place and multiplied by 1.25, " + name +
                  "'s attention factor");
    const Tensor &before = trace.step("k_1").value, &turned = trace.step("k_1_turned").value;
    EXPECT_FLOAT_EQ(turned(0, 3), 1.25f * before(0, 3));
    EXPECT_EQ(turned(3, 5), before(3, 5)) << "it does not turn";
    EXPECT_LT(trace.difference, 1e-5 * trace.magnitude);
  };
  check(RotaryScaling::Kind::kYarn, {}, "yarn");
  check(RotaryScaling::Kind::kFactors, {1, 2}, "longrope");
}

TEST(Trace, ShowsWhatPositionsAddToScores) {
  const Tensor x = random_rows(19, 12, 3), memory = random_rows(23, 12, 4), none;
  for (const Positions positions : {Positions::kAlibi, Positions::kT5, Positions::kShaw}) {
    for (const HeadWeights weights :
         {HeadWeights::kSoftmax, HeadWeights::kDifferential, HeadWeights::kTalking}) {
      TracedLayer made({.heads = 2, .weights = weights}, 12, positions);
      for (const Tensor* from : {&none, &memory}) {
        const AttentionTrace trace = trace_attention(made.layer, x.view(), from->view(),
                                                     from == &none ? Mask::causal() : Mask::none());
        EXPECT_LT(trace.difference, 1e-5 * trace.magnitude)
            << static_cast<int>(positions) << ", " << static_cast<int>(weights);
      }
    }
  }
  const auto walk = [&](Positions positions) {
    TracedLayer made({.heads = 2}, 12, positions);
    return trace_attention(made.layer, x.view(), none.view(), Mask::none());
  };
  const AttentionTrace alibi = walk(Positions::kAlibi);
  EXPECT_EQ(alibi.step("bias_0").formula, "-0.0625 |distance|");  // 2^(-8 / 2)
  EXPECT_FLOAT_EQ(alibi.step("bias_0").value(1, 4), -0.0625 * 3);
  EXPECT_EQ(alibi.step("biased_1").formula, "scaled_1 + bias_1");
  EXPECT_FLOAT_EQ(alibi.step("biased_0").value(5, 2),
                  alibi.step("scaled_0").value(5, 2) + alibi.step("bias_0").value(5, 2));
  EXPECT_EQ(alibi.step("weights_0").formula, "softmax of the rows of biased_0");
  const AttentionTrace t5 = walk(Positions::kT5);
  EXPECT_EQ(t5.step("bias_1").formula, "distance_bias[1, bucket of the distance]");
  EXPECT_EQ(t5.step("bias_1").value(2, 5),
            t5.step("distance_bias").value(1, t5_bucket(3, AttentionDirection::kBidirectional)));
  const AttentionTrace shaw = walk(Positions::kShaw);
  EXPECT_EQ(shaw.step("bias_0").formula, "0.4082 q_0 distance_keys[:, 16 + distance]");
  const DoubleMatrix products = product_of(shaw.step("q_0").value, shaw.step("distance_keys").value);
  EXPECT_NEAR(shaw.step("bias_0").value(4, 1), products(4, 16 - 3) / std::sqrt(6), 1e-5);
  EXPECT_NEAR(shaw.step("bias_0").value(0, 18), products(0, 16 + 16) / std::sqrt(6), 1e-5);
}

TEST(Trace, ShowsWhatDistancesAddToScores) {
  const Tensor x = random_rows(19, 12, 3);
  for (const auto& [shared, biases] :
       {std::pair{true, Biases::kAll}, {true, Biases::kNone}, {false, Biases::kAll}}) {
    DropoutStreams streams;
    MultiHeadAttention layer("layer",
                             {.d_model = 12,
                              .geometry = {.heads = 2, .biases = biases},
                              .positions = Positions::kDisentangled,
                              .disentangled = {.shared_projections = shared, .span = 8, .farthest = 15}},
                             streams);
    Random random(5);
    layer.initialise(random);
    const AttentionTrace trace = trace_attention(layer, x.view(), {}, Mask::none());
    EXPECT_LT(trace.difference, 1e-5 * trace.magnitude);
    EXPECT_EQ(trace.step("bias_1").formula, "0.4082 (q_1 k_r[c]^T + k_1 q_r[c]^T), c of the distance");
    EXPECT_GT(std::abs(trace.step("bias_1").value(2, 11)), 1e-4);
    // Fewer keys than queries, whose distances reach further than the keys do.
    const AttentionTrace memory =
        trace_attention(layer, x.view(), random_rows(7, 12, 4).view(), Mask::none());
    EXPECT_LT(memory.difference, 1e-5 * memory.magnitude);
  }
}

TEST(Trace, ShowsTheSoftCap) {
  for (const Positions positions : {Positions::kNone, Positions::kAlibi}) {
    const TracedLayer traced({.heads = 2, .soft_cap = 0.25f}, 6, positions);
    const AttentionTrace trace =
        trace_attention(traced.layer, random_rows(5, 6, 1).view(), {}, Mask::causal());
    EXPECT_EQ(trace.step("capped_1").formula, "0.25 tanh(scaled_1 / 0.25)");
    EXPECT_EQ(trace.step("capped_1").owner, "head 1");
    DoubleMatrix expected = in_double(trace.step("scaled_1").value.view());
    for (int64_t i = 0; i < expected.size(); ++i)
      expected.data()[i] = 0.25 * std::tanh(expected.data()[i] / 0.25);
    expect_near(trace.step("capped_1").value, expected);
    if (positions == Positions::kAlibi) {
      EXPECT_EQ(trace.step("biased_1").formula, "capped_1 + bias_1");
    }
    EXPECT_LT(trace.difference, 1e-5);
  }
}

TEST(Trace, ShowsTheDifferenceOfTwoSoftmaxes) {
  const Tensor x = random_rows(5, 12, 3), none;
  TracedLayer made({.heads = 3, .weights = HeadWeights::kDifferential}, 12);
  const AttentionTrace trace = trace_attention(made.layer, x.view(), none.view(), Mask::none());
  EXPECT_EQ(trace.step("q_1_2").formula, "(x w_q_1 + b_q_1)[:, 2 ... 3]");
  EXPECT_EQ(trace.step("scores_2_1").formula, "q_2_1 k_2_1^T");
  EXPECT_EQ(trace.step("weights_2").formula, "weights_2_1 - factor weights_2_2");
  EXPECT_EQ(trace.step("factor").formula, "exp(lambda[0] . lambda[1]) - exp(lambda[2] . lambda[3]) + 0.2");
  EXPECT_EQ(trace.step("average_2").formula, "weights_2 v_2");
  EXPECT_EQ(trace.step("z_2").formula, "0.8 head_norm * average_2 / its root mean square");
  const float factor = trace.step("factor").value(0, 0);
  EXPECT_NEAR(trace.step("weights_2").value(1, 3),
              trace.step("weights_2_1").value(1, 3) - factor * trace.step("weights_2_2").value(1, 3), 1e-6);
  // Each softmax has its own queries and keys, of heads that share them, too.
  TracedLayer shared({.heads = 4, .key_heads = 2, .weights = HeadWeights::kDifferential}, 16);
  const AttentionTrace groups =
      trace_attention(shared.layer, random_rows(5, 16, 3).view(), none.view(), Mask::none());
  EXPECT_LT(groups.difference, 1e-5 * groups.magnitude);
  EXPECT_EQ(groups.step("k_2_2").owner, "head 3");
  EXPECT_EQ(groups.step("scores_3_1").formula, "q_3_1 k_2_2^T");
}

TEST(Trace, ShowsHeadsThatTalk) {
  const Tensor x = random_rows(5, 12, 3), none;
  TracedLayer made({.heads = 3, .weights = HeadWeights::kTalking}, 12);
  const AttentionTrace trace = trace_attention(made.layer, x.view(), none.view(), Mask::causal());
  EXPECT_EQ(trace.step("mixed_1").formula, "sum over g of mixing_of_scores[g, 1] scaled_g");
  EXPECT_EQ(trace.step("weights_1").formula, "sum over g of mixing_of_weights[g, 1] softmax_g");
  EXPECT_EQ(trace.step("masked_1").formula, "mixed_1, -infinity where the mask hides the key");
  EXPECT_EQ(trace.step("softmax_1").formula, "softmax of the rows of masked_1");
  EXPECT_EQ(trace.step("z_2").formula, "weights_2 v_2");
  double mixed = 0, weights = 0;
  for (int h = 0; h < 3; ++h) {
    const std::string head = "_" + std::to_string(h);
    mixed += trace.step("mixing_of_scores").value(h, 1) * trace.step("scaled" + head).value(4, 2);
    weights += trace.step("mixing_of_weights").value(h, 1) * trace.step("softmax" + head).value(4, 2);
  }
  EXPECT_NEAR(trace.step("mixed_1").value(4, 2), mixed, 1e-5);
  EXPECT_NEAR(trace.step("weights_1").value(4, 2), weights, 1e-5);
}

TEST(Trace, ShowsTheMask) {
  TracedLayer made({.heads = 1}, 4);
  const Tensor x = random_rows(3, 4, 3), none;
  const AttentionTrace trace = trace_attention(made.layer, x.view(), none.view(), Mask::causal());
  EXPECT_EQ(trace.step("masked_0").value(0, 1), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(trace.step("masked_0").value(2, 1), trace.step("scaled_0").value(2, 1));
  EXPECT_EQ(trace.step("weights_0").value(0, 0), 1);
}

TEST(Trace, WalksThroughTheLayersOfAModel) {
  EncoderDecoder model(small_shape().config());
  model.initialise(7);
  const std::vector<int32_t> source = {5, 9, 4, 8, kEnd}, target = {kPad, 7, 3};
  SiteValues kept;
  kept.keep("*.weights.*");
  Tape tape;
  Context context{.tape = tape, .sites = &kept};
  Batch read, written;
  read.add(source, 0);
  written.add(target, 0);
  model.read(context, read.view(), written.view());
  for (const auto& [name, heads, place] : model.attentions()) {
    const AttentionTrace trace = trace_attention(model, name, source, target);
    for (int h = 0; h < heads; ++h) {
      const Tensor& weights = trace.step("weights_" + std::to_string(h)).value;
      const Tensor& of_kernel = kept.value(name + ".weights." + std::to_string(h));
      ASSERT_EQ(weights.rows(), of_kernel.rows()) << name;
      ASSERT_EQ(weights.cols(), of_kernel.cols()) << name;
      for (int64_t i = 0; i < weights.size(); ++i)
        ASSERT_NEAR(weights.data()[i], of_kernel.data()[i], 1e-5) << name;
    }
  }
}

// The first step that overflows is named; what a mask hides is -infinity and no mistake.
// MPNet: the first layer has the table of distances of all.
TEST(Trace, ShowsABiasThatAnotherLayerHas) {
  const ModelFolder folder = load_model_folder(kGoldens / "mpnet/masked");
  const std::vector<int32_t> ids = {0, 7, 11, 3, 29, 2};
  const AttentionTrace trace = trace_attention(*folder.model, "encoder.1.self_attention", ids, {});
  EXPECT_LT(trace.difference, 1e-5);
  EXPECT_THAT(trace.step("bias_0").formula, HasSubstr("distance_bias[0"));
}

TEST(Trace, NumbersThatAreNotFiniteAreAnError) {
  Tensor x(3, 4), none;
  x.fill(1);
  const auto expect_refused = [&](const char* parameter, const char* step) {
    TracedLayer made({.heads = 2}, 4);
    made.layer.visit("", [&](const std::string& name, Parameter& p) {
      if (name == ".w_v") p.value.fill(1);  // so that the values do not cancel out
      if (name == parameter) p.value.fill(3e38f);
      p.changed();
    });
    EXPECT_THAT([&] { trace_attention(made.layer, x.view(), none.view(), Mask::causal()); },
                ThrowsMessage<Error>(HasSubstr(step)))
        << parameter;
  };
  expect_refused(".w_q", "step q_0 (x w_q_0 + b_q_0) of layer has numbers that are not finite");
  expect_refused(".w_v", "step v_0 (x w_v_0 + b_v_0) of layer has numbers that are not finite");
  expect_refused(".w_o", "step output (z w_o + b_o) of layer has numbers that are not finite");
  TracedLayer made({.heads = 2}, 4);
  Tensor rows = random_rows(3, 4, 3);
  rows(1, 2) = std::nanf("");
  EXPECT_THAT([&] { trace_attention(made.layer, rows.view(), none.view(), Mask::none()); },
              ThrowsMessage<Error>(HasSubstr("step x (the rows that come in)")));
}

TEST(Trace, RefusesWhatCannotBe) {
  EncoderDecoder model(small_shape().config());
  const std::vector<int32_t> source = {5, kEnd}, none;
  EXPECT_THAT([&] { trace_attention(model, "encoder.2.self_attention", source, none); },
              ThrowsMessage<UsageError>(
                  HasSubstr("it has encoder.0.self_attention to encoder.1.self_attention with ")));
  EXPECT_THAT([&] { trace_attention(model, "decoder.0.cross_attention", source, none); },
              ThrowsMessage<UsageError>(HasSubstr("give a target")));
  EXPECT_THAT([&] { trace_attention(model, "encoder.0.self_attention", none, none); },
              ThrowsMessage<UsageError>(HasSubstr("at least one token")));
  TracedLayer made({.heads = 1}, 4);
  EXPECT_THAT(
      [&] { trace_attention(made.layer, random_rows(2, 4, 1).view(), random_rows(2, 5, 1).view(), {}); },
      ThrowsMessage<ShapeError>(HasSubstr("the rows of queries are [2,4], those of the memory [2,5]")));
  EXPECT_THAT([&] { trace_attention(made.layer, random_rows(2, 5, 1).view(), Tensor().view(), {}); },
              ThrowsMessage<ShapeError>(HasSubstr("[2,5]")));
}

}  // namespace
}  // namespace mh
