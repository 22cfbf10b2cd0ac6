// Every conversion of heads: exact ones give the same outputs, the others come as near as they promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/model_ledger.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kWidth = 12;

struct Layer {
  explicit Layer(const HeadGeometry& geometry, Positions positions = Positions::kNone)
      : layer("layer", {.d_model = kWidth, .geometry = geometry, .positions = positions}, streams) {
    Random random(5);
    layer.initialise(random);
    layer.visit("", [&](const std::string& name, Parameter& p) {  // biases start at 0, which would hide them
      if (name[1] == 'b' || name[1] == 'c') fill_normal(p, random, 0.5);
    });
  }
  explicit Layer(const LayerWeights& weights, Positions positions = Positions::kNone)
      : Layer(weights.geometry, positions) {
    put_weights(weights, layer);
  }
  LayerWeights weights() { return weights_of(layer, kWidth); }

  DropoutStreams streams;
  MultiHeadAttention layer;
};

/// Concat(heads) W^O of 7 rows that attend to 5 others; without the gated heads.
Tensor output_of(Layer& made, Sites* sites = nullptr) {
  Random random(9);
  Parameter x(7, kWidth), memory(5, kWidth);
  fill_normal(x, random, 1);
  fill_normal(memory, random, 1);
  const Ragged queries = Ragged::from_lengths(std::vector<int32_t>{7}),
               keys = Ragged::from_lengths(std::vector<int32_t>{5});
  Tape tape;
  Context context{.tape = tape, .sites = sites};
  const KeysAndValues ready =
      made.layer.project_memory(context, tape.constant(memory.value.view()), keys.offsets());
  const Var q =
      made.layer.project_queries(context, tape.constant(x.value.view()), {.offsets = queries.offsets()});
  Var y = made.layer.attend(context, q, {.ids = {}, .ragged = &queries, .sentences = {}}, ready, Mask::none(),
                            {.offsets = queries.offsets()});
  if (made.layer.output() != nullptr) y = affine(tape, y, *made.layer.output());
  Tensor kept(y.rows(), y.cols());
  for (int64_t i = 0; i < y.rows(); ++i) std::copy_n(y.value().row(i), y.cols(), kept.view().row(i));
  return kept;
}

double difference(const Tensor& a, const Tensor& b) {
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(a.data()[i] - b.data()[i])));
  return most;
}
double difference(Layer& before, const LayerWeights& after, Sites* sites = nullptr,
                  Positions positions = Positions::kNone) {
  Layer made(after, positions);
  return difference(output_of(before, sites), output_of(made));
}

TEST(ConvertHeads, EveryGeometryBecomesCanonical) {
  for (const GeometryName& name : geometry_names()) {
    const HeadGeometry geometry = geometry_preset(name.name, 4, kWidth);
    if (geometry.weights != HeadWeights::kSoftmax) continue;
    Layer before(geometry);
    // A bias of merged scores that is any is one more dimension.
    const int d_key = geometry.scores == Scores::kMerged ? 4 : 0;
    const LayerWeights after = to_canonical(before.weights(), {.d_key = d_key});
    EXPECT_EQ(after.geometry.input.kind, HeadInput::Kind::kWholeRow) << name.name;
    EXPECT_EQ(after.geometry.scores, Scores::kQueryKey) << name.name;
    EXPECT_LT(difference(before, after), 1e-5) << name.name;
  }
  Layer segments({.heads = 2, .d_key = 3, .input = HeadInput::of_columns({{0, 2, 3, 4}, {2, 4, 11}})});
  const LayerWeights after = to_canonical(segments.weights());
  EXPECT_LT(difference(segments, after), 1e-5);
  EXPECT_EQ(after.values.at("w_q")(1, 0), 0);  // no head reads number 1
  EXPECT_NE(after.values.at("w_q")(2, 0), 0);
  EXPECT_EQ(after.values.at("w_q")(3, 4), 0);
}

TEST(ConvertHeads, MergedAndBack) {
  for (const HeadGeometry& geometry :
       {HeadGeometry{.heads = 3, .d_key = 5}, HeadGeometry{.heads = 4, .d_key = 2, .key_heads = 2},
        HeadGeometry{.heads = 2, .d_key = 3, .scores = Scores::kTied, .biases = Biases::kNone},
        HeadGeometry{.heads = 4, .input = HeadInput::slices()}}) {
    Layer before(geometry);
    const LayerWeights merged = to_merged(before.weights());
    EXPECT_EQ(merged.geometry.scores, Scores::kMerged);
    EXPECT_LT(difference(before, merged), 1e-5);
    const LayerWeights back = to_canonical(merged);
    EXPECT_EQ(back.geometry.d_key, before.layer.geometry().d_key);
    EXPECT_LT(difference(before, back), 1e-5);
  }
}

TEST(ConvertHeads, ARankThatIsTooHighIsNamed) {
  Layer merged({.heads = 2, .d_key = 3, .scores = Scores::kMerged});
  LayerWeights weights = merged.weights();
  Parameter noise(kWidth, 2 * kWidth);
  Random random(3);
  fill_normal(noise, random, 0.3);
  weights.values["w_qk"] = noise.value.tensor();  // of full rank
  EXPECT_THAT(
      [&] { to_canonical(weights); },
      ThrowsMessage<UsageError>("the matrix of head 0 has rank 12, more than d_key 3 can say; give d_key 12, "
                                "or ask for the nearest"));
  Layer noisy(weights);
  EXPECT_LT(difference(noisy, to_canonical(weights, {.d_key = 12})), 1e-5);
  // The nearer the more rank is kept.
  double last = 1e9;
  for (const int d_key : {3, 6, 9, 12}) {
    const LayerWeights near = to_canonical(weights, {.d_key = d_key, .nearest = true});
    LayerWeights products = to_merged(near);
    const double error = difference(products.values.at("w_qk"), weights.values.at("w_qk"));
    EXPECT_LT(error, last);
    last = error;
  }
}

TEST(ConvertHeads, GroupsTakeTheMean) {
  Layer before({.heads = 4, .d_key = 3});
  const LayerWeights old = before.weights(), after = to_grouped(old, 2);
  EXPECT_EQ(after.geometry.key_heads, 2);
  EXPECT_FLOAT_EQ(after.values.at("w_k")(7, 4),
                  (old.values.at("w_k")(7, 7) + old.values.at("w_k")(7, 10)) / 2);
  EXPECT_FLOAT_EQ(after.values.at("b_v")(0, 2),
                  (old.values.at("b_v")(0, 2) + old.values.at("b_v")(0, 5)) / 2);
  EXPECT_GT(difference(before, after), 1e-3);
  // Exact when those of a group are equal: there and back.
  Layer shared({.heads = 4, .d_key = 3, .key_heads = 2});
  const LayerWeights together = shared.weights();
  LayerWeights apart = together;
  apart.geometry.key_heads = apart.geometry.value_heads = 4;
  for (const char* name : {"w_k", "w_v", "b_k", "b_v"}) {
    const Tensor& narrow = together.values.at(name);
    Tensor wide(narrow.rows(), 12);
    for (int64_t i = 0; i < wide.rows(); ++i) {
      for (int64_t j = 0; j < 12; ++j) wide(i, j) = narrow(i, j / 6 * 3 + j % 3);
    }
    apart.values[name] = wide;
  }
  EXPECT_LT(difference(shared, to_grouped(apart, 2)), 1e-6);
  EXPECT_THAT(
      [&] { to_grouped(old, 3); },
      ThrowsMessage<UsageError>(HasSubstr("key_heads is 3; expected a divisor of the 4 heads of keys")));
}

TEST(ConvertHeads, CollaborativeIsExactAtFullSizeAndNearBelow) {
  Layer before({.heads = 3, .d_key = 4});
  const LayerWeights old = before.weights();
  EXPECT_LT(difference(before, to_collaborative(old, 12)), 1e-5);
  const auto error = [&](int size) {
    const Tensor found = to_merged(to_canonical(to_collaborative(old, size))).values.at("w_qk");
    const Tensor expected = to_merged(old).values.at("w_qk");
    double squares = 0, all = 0;
    for (int64_t i = 0; i < found.size(); ++i) {
      squares += std::pow(found.data()[i] - expected.data()[i], 2);
      all += std::pow(expected.data()[i], 2);
    }
    return std::sqrt(squares / all);
  };
  const double of_10 = error(10), of_6 = error(6), of_2 = error(2);
  EXPECT_LT(of_10, of_6);
  EXPECT_LT(of_6, of_2);
  EXPECT_LT(of_10, 0.25);
  EXPECT_LT(of_2, 1);
  // Heads that do share are found: heads equal up to a mixing vector need no more than one head's size.
  Layer shared({.heads = 3, .d_key = 4, .scores = Scores::kCollaborative, .shared_size = 4});
  const LayerWeights canonical = to_canonical(shared.weights());
  EXPECT_LT(difference(shared, to_collaborative(canonical, 8)), 0.02);
}

// Grouped queries: whole groups go and change places, or as many heads of each.
TEST(ConvertHeads, HeadsThatShareKeysStayTogether) {
  Layer before({.heads = 6, .key_heads = 3});
  const LayerWeights old = before.weights();
  EXPECT_LT(difference(before, permuted(old, {4, 5, 1, 0, 2, 3})), 1e-5);
  for (const std::vector<int>& removed : {std::vector<int>{2, 3}, {0, 3, 4}}) {
    SiteValues muted;
    for (const int head : removed) muted.mute("*." + std::to_string(head));
    const LayerWeights after = without_heads(old, removed);
    EXPECT_EQ(after.geometry.key_heads, removed.size() == 2 ? 2 : 3);
    EXPECT_LT(difference(before, after, &muted), 1e-5);
  }
  EXPECT_THROW(without_heads(old, {0}), UsageError);
}

TEST(ConvertHeads, PermutedHeadsAreTheSameLayer) {
  for (const HeadOutput output : {HeadOutput::kProjection, HeadOutput::kConcatenation}) {
    Layer before({.heads = 3, .output = output});
    const LayerWeights old = before.weights(), after = permuted(old, {2, 0, 1});
    EXPECT_EQ(after.values.at("w_q")(5, 0), old.values.at("w_q")(5, 8));
    if (output == HeadOutput::kConcatenation) continue;  // its outputs lie in the order of the heads
    EXPECT_LT(difference(before, after), 1e-5);
  }
  const LayerWeights old = Layer({.heads = 3}).weights();
  EXPECT_THAT(
      [&] {
        permuted(old, {0, 1, 1});
      },
      ThrowsMessage<UsageError>("the order 0,1,1 is no permutation of heads 0 ... 2; name each once"));
  EXPECT_THAT(
      [&] {
        permuted(Layer({.heads = 4, .key_heads = 2}).weights(), {0, 2, 1, 3});
      },
      ThrowsMessage<UsageError>(HasSubstr("heads 0 ... 1 share keys and values")));
  EXPECT_THAT(
      [&] {
        permuted(Layer({.heads = 3, .input = HeadInput::slices()}).weights(), {0, 1, 2});
      },
      ThrowsMessage<UsageError>(HasSubstr("convert to canonical first")));
  EXPECT_THAT(
      [&] {
        permuted(Layer({.heads = 2, .weights = HeadWeights::kTalking}).weights(), {1, 0});
      },
      ThrowsMessage<UsageError>(HasSubstr("talking heads mix each other's weights")));
}

// Gains of norms over all heads go with their heads.
TEST(ConvertHeads, NormsOfAllHeadsTogetherAllowAnotherOrderAlone) {
  Layer before({.heads = 6, .key_heads = 3, .query_key_norm = QueryKeyNorm::kRmsRow});
  LayerWeights old = before.weights();
  Random random(3);
  for (const char* name : {"query_norm", "key_norm"}) {
    for (int64_t i = 0; i < old.values[name].size(); ++i)
      old.values[name].data()[i] = 0.5f + static_cast<float>(random.uniform());
  }
  put_weights(old, before.layer);
  EXPECT_LT(difference(before, permuted(old, {4, 5, 1, 0, 2, 3})), 1e-5);
  for (const std::function<void()>& change :
       std::vector<std::function<void()>>{[&] {
                                            without_heads(old, {2, 3});
                                          },
                                          [&] { to_grouped(old, 1); }, [&] { to_merged(old); }})
    EXPECT_THAT(change,
                ThrowsMessage<UsageError>(HasSubstr("a norm runs over the queries, or keys, of all")));
}

// What else heads have goes with them.
TEST(ConvertHeads, PositionsNormsAndDifferencesStay) {
  const HeadGeometry plain{.heads = 3},
      differential{.heads = 3, .d_key = 2, .weights = HeadWeights::kDifferential};
  SiteValues muted;
  muted.mute("layer.1");
  for (const Positions positions : {Positions::kT5, Positions::kShaw}) {
    for (const HeadGeometry& geometry : {plain, differential}) {
      Layer before(geometry, positions);
      const LayerWeights old = before.weights();
      EXPECT_LT(difference(before, permuted(old, {2, 0, 1}), nullptr, positions), 1e-5);
      EXPECT_LT(difference(before, without_heads(old, {1}), &muted, positions), 1e-5);
    }
    Layer sliced({.heads = 3, .input = HeadInput::slices()}, positions);
    EXPECT_LT(difference(sliced, to_canonical(sliced.weights()), nullptr, positions), 1e-5);
  }
  Layer t5(plain, Positions::kT5);
  EXPECT_LT(difference(t5, to_merged(t5.weights()), nullptr, Positions::kT5), 1e-5);
  EXPECT_THAT(
      [&] { to_merged(Layer(plain, Positions::kShaw).weights()); },
      ThrowsMessage<UsageError>("a conversion to merged: Shaw's positions meet each query before its product "
                                "with the keys"));
  EXPECT_THAT(
      [&] { to_collaborative(Layer({.heads = 3, .query_key_norm = QueryKeyNorm::kL2}).weights(), 4); },
      ThrowsMessage<UsageError>(HasSubstr("with a query_key_norm queries and keys are normed")));
  EXPECT_THAT([&] { to_grouped(Layer(differential).weights(), 1); },
              ThrowsMessage<UsageError>(HasSubstr("differential heads have two queries and two keys each")));
  // Twins with different positions are no twins.
  Layer twins({.heads = 2, .biases = Biases::kNone, .initialisation = HeadInitialisation::kEqualInput},
              Positions::kT5);
  LayerWeights pair = twins.weights();
  EXPECT_EQ(equal_merged(pair).geometry.heads, 2);
  for (int64_t c = 0; c < pair.values["distance_bias"].cols(); ++c)
    pair.values["distance_bias"](1, c) = pair.values["distance_bias"](0, c);
  const LayerWeights one = equal_merged(pair);
  EXPECT_EQ(one.geometry.heads, 1);
  Layer equal(pair, Positions::kT5);
  EXPECT_LT(difference(equal, one, nullptr, Positions::kT5), 1e-5);
}

TEST(ConvertHeads, RemovedIsMuted) {
  Layer before({.heads = 4, .d_key = 5, .d_value = 2});
  SiteValues muted;
  muted.mute("layer.1");
  muted.mute("layer.3");
  const LayerWeights after = without_heads(before.weights(), {3, 1});
  EXPECT_EQ(after.geometry.heads, 2);
  EXPECT_LT(difference(before, after, &muted), 1e-5);
  EXPECT_GT(difference(before, after), 1e-2);
  EXPECT_THAT([&] { without_heads(before.weights(), {4}); },
              ThrowsMessage<UsageError>("there is no head 4 to remove; there are 0 ... 3"));
  EXPECT_THAT(
      [&] {
        without_heads(before.weights(), {0, 1, 2, 3});
      },
      ThrowsMessage<UsageError>(HasSubstr("leave at least one")));
}

TEST(ConvertHeads, OfEqualHeadsOneIsEnough) {
  Layer before({.heads = 4, .d_value = 2, .initialisation = HeadInitialisation::kEqualInput});
  EXPECT_EQ(equal_merged(before.weights()).geometry.heads, 4);  // biases differ here
  before.layer.visit("", [](const std::string& name, Parameter& p) {
    if (name[1] == 'b') p.value.fill(0.25f);
    p.changed();
  });
  const LayerWeights one = equal_merged(before.weights());
  EXPECT_EQ(one.geometry.heads, 1);
  EXPECT_LT(difference(before, one), 1e-5);
  // Two pairs of twins.
  LayerWeights pairs = before.weights();
  for (const char* name : {"w_q", "w_v"}) {
    Tensor& w = pairs.values[name];
    for (int64_t i = 0; i < w.rows(); ++i) {
      for (int64_t j = 0; j < w.cols(); ++j) w(i, j) *= (j * 4 / w.cols()) % 2 == 1 ? 2 : 1;
    }
  }
  Layer twins(pairs);
  const LayerWeights two = equal_merged(pairs);
  EXPECT_EQ(two.geometry.heads, 2);
  EXPECT_LT(difference(twins, two), 1e-5);
}

class ConvertModel : public testing::Test {
 protected:
  static TranslatorShape config_of(const HeadGeometry& geometry) {
    TranslatorShape shape = small_shape();
    shape.encoder_heads = shape.decoder_heads = 4;
    shape.d_model = 20;
    shape.geometry = geometry;
    return shape;
  }
  explicit ConvertModel(const HeadGeometry& geometry = {}) : model(config_of(geometry).config()) {
    model.initialise(11);
    sharpen(model, 1.5f);
  }
  Difference compare(const Model& with, Sites* sites = nullptr) {
    auto targets = random_sentences(model.facts(), 37, 3, 6);
    for (auto& target : targets) target.insert(target.begin(), kPad);
    return compare_models(model, with, random_sentences(model.facts(), 37, 3, 5), targets, sites)
        .of_outputs();
  }
  static std::unique_ptr<EncoderDecoder> translator(std::unique_ptr<Model> made) {
    return std::unique_ptr<EncoderDecoder>(&dynamic_cast<EncoderDecoder&>(*made.release()));
  }
  static std::unique_ptr<EncoderDecoder> converted(Model& given,
                                                   LayerWeights (*convert)(const LayerWeights&)) {
    return translator(convert_model(
        given, [&](const std::string&, const LayerWeights& before) { return convert(before); }));
  }

  EncoderDecoder model;
};

TEST_F(ConvertModel, MergedAndBackIsTheSameDescription) {
  auto merged = converted(model, [](const LayerWeights& w) { return to_merged(w); });
  EXPECT_EQ(shape_of(merged->config()).geometry.scores, Scores::kMerged);
  const Difference there = compare(*merged);
  EXPECT_LT(there.largest, 1e-4 * there.magnitude);
  EXPECT_GT(there.magnitude, 0.1);
  auto back = converted(*merged, [](const LayerWeights& w) { return to_canonical(w); });
  EXPECT_EQ(shape_of(back->config()).geometry, HeadGeometry());
  EXPECT_LT(compare(*back).largest, 1e-4 * there.magnitude);
}

TEST_F(ConvertModel, HeadsAreRemovedFromOneSide) {
  const std::vector<std::string> removed = {"encoder.0.self_attention.3", "encoder.1.self_attention.0"};
  auto made = translator(without_heads(model, removed));
  EXPECT_EQ(shape_of(made->config()).encoder_heads, 3);
  EXPECT_EQ(shape_of(made->config()).decoder_heads, 4);
  EXPECT_EQ(shape_of(made->config()).geometry.d_key, 5);
  EXPECT_EQ(model.parameter_count() - made->parameter_count(), 2 * (3 * 5 * 21 + 5 * 20));
  SiteValues muted;
  for (const std::string& head : removed) muted.mute(head);
  EXPECT_LT(compare(*made, &muted).largest, 1e-4);
  EXPECT_GT(compare(*made).largest, 1e-3);
  EXPECT_THAT([&] { without_heads(model, {"encoder.0.self_attention.4"}); }, testing::Throws<UsageError>());
}

TEST_F(ConvertModel, AttentionsMayLoseUnequallyManyHeads) {
  const std::vector<std::string> removed = {"encoder.1.self_attention.3", "encoder.1.self_attention.0",
                                            "decoder.0.cross_attention.2"};
  auto made = translator(without_heads(model, removed));
  EXPECT_EQ(shape_of(made->config()).encoder_heads, 4);
  ASSERT_EQ(shape_of(made->config()).own_heads.size(), 2u);
  EXPECT_EQ(shape_of(made->config()).heads_of({AttentionKind::kEncoderSelf, 1}).heads, 2);
  EXPECT_EQ(shape_of(made->config()).heads_of({AttentionKind::kCross, 0}).heads, 3);
  EXPECT_EQ(made->attention("encoder.1.self_attention").heads(), 2);
  SiteValues muted;
  for (const std::string& head : removed) muted.mute(head);
  EXPECT_LT(compare(*made, &muted).largest, 1e-4);

  // It is saved, opened and counted as any other.
  test::ScratchFolder scratch;
  save_model_folder(scratch / "pruned", *made);
  const ModelFolder folder = load_model_folder(scratch / "pruned");
  EXPECT_EQ(folder.model_type, "multihead");
  EXPECT_EQ(shape_of(folder.translator().config()).own_heads, shape_of(made->config()).own_heads);
  EXPECT_EQ(compare(folder.translator(), &muted).largest, compare(*made, &muted).largest);
  EXPECT_EQ(model_ledger(made->config(), 5, 7).total().parameters, made->parameter_count());
  // And back to equal heads everywhere.
  auto rest = translator(without_heads(
      *made, {"encoder.0.self_attention.0", "encoder.0.self_attention.1", "decoder.0.self_attention.0"}));
  EXPECT_EQ(shape_of(rest->config()).encoder_heads, 2);
}

TEST_F(ConvertModel, GroupsAreAnotherFunction) {
  auto made = converted(model, [](const LayerWeights& w) { return to_grouped(w, 1); });
  EXPECT_EQ(shape_of(made->config()).geometry, (HeadGeometry{.key_heads = 1}));
  EXPECT_GT(compare(*made).largest, 1e-3);
}

TEST_F(ConvertModel, RotaryQueriesAndKeysCannotBecomeOne) {
  TranslatorShape shape = config_of({.d_key = 6});
  shape.positions = Positions::kRotary;
  EncoderDecoder rotary(shape.config());
  rotary.initialise(3);
  EXPECT_THAT(
      [&] { convert_model(rotary, [](const std::string&, const LayerWeights& w) { return to_merged(w); }); },
      ThrowsMessage<UsageError>(HasSubstr("encoder.0.self_attention: rotary positions turn")));
}

}  // namespace
}  // namespace mh
