// CircuitsReport against hand calculations, and what must not change them.
#include "multihead/heads/measures/heads_circuits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/reports/circuits_json.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/translator_shape.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/multi_head_attention.h"
#include "tests/heads/measures/circuit_families.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using test::CircuitFamily;
using test::put_numbers;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Two layers of one head, d_model 3, norms after the sublayers, embeddings the identity.
std::unique_ptr<Model> model_by_hand() {
  CausalConfig config;
  config.embedding = {.vocabulary = 3, .d_model = 3, .scaled = false};
  config.max_positions = 5;
  config.stack = {.name = "decoder",
                  .d_model = 3,
                  .layers = std::vector<LayerConfig>(
                      2, {.self_attention = {.heads = 1, .d_key = 2}, .feed_forward = {.d_ff = 5}}),
                  .mask = StackMask::causal()};
  auto model = std::make_unique<CausalModel>(config);
  put_numbers(*model, "embedding", {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  put_numbers(*model, "decoder.0.self_attention.w_q", {{1, 0}, {0, 2}, {0, 0}});
  put_numbers(*model, "decoder.0.self_attention.w_k", {{3, 0}, {0, 1}, {0, 0}});
  put_numbers(*model, "decoder.0.self_attention.w_v", {{1, 0}, {0, 1}, {0, 0}});
  put_numbers(*model, "decoder.0.self_attention.w_o", {{2, 0, 0}, {0, -1, 0}});
  put_numbers(*model, "decoder.1.self_attention.w_q", {{1, 0}, {0, 0}, {0, 1}});
  put_numbers(*model, "decoder.1.self_attention.w_k", {{0, 0}, {0, 0}, {1, 1}});
  put_numbers(*model, "decoder.1.self_attention.w_v", {{0, 0}, {1, 0}, {0, 0}});
  put_numbers(*model, "decoder.1.self_attention.w_o", {{0, 0, 4}, {0, 0, 0}});
  return model;
}

TEST(HeadsCircuits, ByHand) {
  const CircuitsReport found = heads_circuits(*model_by_hand());
  ASSERT_EQ(found.heads.size(), 2u);
  const HeadCircuits& first = found.heads[0];  // W_QK = diag(3, 2, 0), W_OV = diag(2, -1, 0)
  EXPECT_EQ(first.name(), "decoder.0.self_attention.0");
  EXPECT_THAT(first.query_key.singular_values,
              testing::ElementsAre(testing::DoubleNear(3, 1e-12), testing::DoubleNear(2, 1e-12)));
  EXPECT_NEAR(first.query_key.norm, std::sqrt(13.0), 1e-12);
  EXPECT_NEAR(first.query_key.effective_rank, std::exp(-0.6 * std::log(0.6) - 0.4 * std::log(0.4)), 1e-12);
  EXPECT_NEAR(*first.copying, (2 - 1) / 3.0, 1e-12);
  const HeadCircuits& second = found.heads[1];  // W_OV moves number 1 to number 2: all eigenvalues are 0
  EXPECT_NEAR(second.value_output.effective_rank, 1, 1e-12);
  EXPECT_NEAR(second.value_output.norm, 4, 1e-12);
  EXPECT_FALSE(second.copying.has_value());

  // W_QK2 reads the query's number 0 and 2 and the key's 2: [[0, 0, 1], [0, 0, 0], [0, 0, 1]]. Of the queries W_OV1 gives 2 e_0.
  ASSERT_EQ(found.compositions.size(), 3u);
  EXPECT_NEAR(found.compositions[0].strength, 2 / (std::sqrt(5.0) * std::sqrt(2.0)), 1e-7);
  EXPECT_NEAR(found.compositions[1].strength, 0, 1e-7);  // W_OV1 writes no number 2
  EXPECT_NEAR(found.compositions[2].strength, 4 / (std::sqrt(5.0) * 4),
              1e-7);  // -e_1 is read, and 4 times itself written
  const std::vector<Composition> strongest = strongest_compositions(found, 2);
  ASSERT_EQ(strongest.size(), 2u);
  EXPECT_EQ(strongest[0].part, HeadPart::kQueries);
  EXPECT_EQ(strongest[1].part, HeadPart::kValues);
  EXPECT_EQ(strongest_compositions(found, 7).size(), 3u);
}

TEST(HeadsCircuits, CopyingIsOneWhereAHeadPassesOnWhatItReads) {
  for (const float factor : {2.0f, -0.5f}) {
    CausalConfig config = test::gpt_config();
    config.stack.norm = {.placement = NormPlacement::kPost};
    config.stack.layers = {
        {.self_attention = {.heads = 1, .d_key = 3, .d_value = 13}, .feed_forward = {.d_ff = 11}}};
    CircuitFamily family = test::family_causal(config, 4);
    std::vector<std::vector<float>> identity(13, std::vector<float>(13)), scaled = identity;
    for (size_t i = 0; i < 13; ++i) {
      identity[i][i] = 1;
      scaled[i][i] = factor;
    }
    put_numbers(*family.model, "decoder.0.self_attention.w_v", identity);
    put_numbers(*family.model, "decoder.0.self_attention.w_o", scaled);
    EXPECT_NEAR(*heads_circuits(*family.model).heads[0].copying, factor > 0 ? 1 : -1, 1e-6);
  }
}

TEST(HeadsCircuits, NothingToReadOutWith) {
  EncoderConfig encoder = test::encoder_config();
  encoder.masked_words.reset();
  CausalConfig causal = test::gpt_config();
  causal.predicts = false;
  for (const Model* model :
       std::initializer_list<const Model*>{new EncoderModel(encoder), new CausalModel(causal)}) {
    const std::unique_ptr<const Model> owned(model);
    for (const HeadCircuits& head : heads_circuits(*owned).heads) EXPECT_FALSE(head.copying.has_value());
  }
}

void expect_same(const HeadCircuits& a, const HeadCircuits& b, double tolerance) {
  for (const auto& [x, y] : {std::pair{&a.query_key, &b.query_key}, {&a.value_output, &b.value_output}}) {
    ASSERT_EQ(x->singular_values.size(), y->singular_values.size()) << a.name();
    for (size_t i = 0; i < x->singular_values.size(); ++i)
      EXPECT_NEAR(x->singular_values[i], y->singular_values[i], tolerance) << a.name();
    EXPECT_NEAR(x->effective_rank, y->effective_rank, tolerance) << a.name();
  }
  ASSERT_EQ(a.copying.has_value(), b.copying.has_value()) << a.name();
  EXPECT_NEAR(a.copying.value_or(0), b.copying.value_or(0), tolerance) << a.name();
}

TEST(HeadsCircuits, PermutedHeadsHaveTheirCircuits) {
  const CircuitFamily family = test::family_translator(NormPlacement::kPre, true);
  const auto order = [](size_t heads) {  // 1, 2, ..., 0
    std::vector<int> order(heads);
    std::iota(order.begin(), order.end(), 1);
    order.back() = 0;
    return order;
  };
  const std::unique_ptr<Model> turned =
      convert_model(*family.model, [&](const std::string&, const LayerWeights& layer) {
        return permuted(layer, order(static_cast<size_t>(layer.geometry.heads)));
      });
  const CircuitsReport before = heads_circuits(*family.model), after = heads_circuits(*turned);
  const auto of_before = [&](size_t h) {  // the number of head h of the permuted model
    const auto heads = static_cast<size_t>(family.model->attention(after.heads[h].attention).heads());
    const auto own = static_cast<size_t>(after.heads[h].head);
    return h - own + static_cast<size_t>(order(heads)[own]);
  };
  for (size_t h = 0; h < after.heads.size(); ++h)
    expect_same(before.heads[of_before(h)], after.heads[h], 1e-9);
  ASSERT_EQ(before.compositions.size(), after.compositions.size());
  for (const Composition& c : after.compositions) {
    const auto same =
        std::find_if(before.compositions.begin(), before.compositions.end(), [&](const Composition& other) {
          return other.from == of_before(c.from) && other.to == of_before(c.to) && other.part == c.part;
        });
    ASSERT_NE(same, before.compositions.end());
    EXPECT_NEAR(c.strength, same->strength, 1e-6);
  }
}

TEST(HeadsCircuits, DoNotDependOnTheBasisOfQueriesAndKeys) {
  CircuitFamily family = test::family_causal(test::gpt_config(), 6);
  const CircuitsReport before = heads_circuits(*family.model);
  // W_Q A and W_K A^-T, with A = [[1, 2], [0, 4]] for the two numbers of each head of the last layer.
  family.model->visit(ParameterVisitor([](const std::string& name, Parameter& p) {
    const bool queries = name == "decoder.2.self_attention.w_q";
    if (!queries && name != "decoder.2.self_attention.w_k") return;
    for (int64_t i = 0; i < p.value.rows(); ++i) {
      for (int64_t h = 0; h < 5; ++h) {
        float &x = p.value(i, 2 * h), &y = p.value(i, 2 * h + 1);
        if (queries) {
          y = 2 * x + 4 * y;
        } else {  // A^-T = [[1, 0], [-1/2, 1/4]]
          x -= y / 2;
          y /= 4;
        }
      }
    }
    p.changed();
  }));
  const CircuitsReport after = heads_circuits(*family.model);
  for (size_t h = 0; h < before.heads.size(); ++h) expect_same(before.heads[h], after.heads[h], 1e-5);
  for (size_t i = 0; i < before.compositions.size(); ++i)
    EXPECT_NEAR(before.compositions[i].strength, after.compositions[i].strength, 1e-5);
}

CircuitFamily circuits_of_geometry(const HeadGeometry& geometry) {
  TranslatorShape shape = small_shape();
  shape.d_model = 12;
  shape.encoder_heads = shape.decoder_heads = 4;
  shape.geometry = geometry;
  CircuitFamily family{std::make_unique<EncoderDecoder>(shape.config()), {}};
  test::fill_parameters(*family.model, 8);
  return family;
}

TEST(HeadsCircuits, GeometriesHaveThoseOfTheEqualCanonicalHeads) {
  for (const GeometryName& name : geometry_names()) {
    const HeadGeometry geometry = geometry_preset(name.name, 4, 12);
    if (geometry.weights != HeadWeights::kSoftmax) continue;
    const CircuitFamily family = circuits_of_geometry(geometry);
    const std::unique_ptr<Model> canonical =
        convert_model(*family.model, [](const std::string&, const LayerWeights& layer) {
          return to_canonical(layer, {.d_key = layer.geometry.scores == Scores::kMerged ? 12 : 0});
        });
    const CircuitsReport found = heads_circuits(*family.model), expected = heads_circuits(*canonical);
    ASSERT_EQ(found.heads.size(), expected.heads.size()) << name.name;
    for (size_t h = 0; h < found.heads.size(); ++h) expect_same(found.heads[h], expected.heads[h], 1e-4);
    for (size_t i = 0; i < found.compositions.size(); ++i)
      EXPECT_NEAR(found.compositions[i].strength, expected.compositions[i].strength, 1e-5) << name.name;
  }
}

TEST(HeadsCircuits, RefusesHeadsThatHaveNone) {
  const auto refuses = [](const char* geometry, const char* why) {
    const CircuitFamily family = circuits_of_geometry(geometry_preset(geometry, 4, 12));
    EXPECT_THAT([&] { heads_circuits(*family.model); },
                ThrowsMessage<UsageError>(
                    HasSubstr(std::string("encoder.0.self_attention has ") + geometry +
                              " heads, of which none has a W_QK and a W_OV of its own (" + why)));
  };
  refuses("differential", "differential heads have two queries and two keys each");
  refuses("talking", "talking heads mix");
}

TEST(HeadsCircuits, RefusesWhatIsNotANumber) {
  CircuitFamily family = test::family_bert();
  put_numbers(*family.model, "encoder.1.self_attention.w_k", {{std::numeric_limits<float>::quiet_NaN()}});
  EXPECT_THAT([&] { heads_circuits(*family.model); },
              ThrowsMessage<Error>(
                  HasSubstr("encoder.1.self_attention: orthogonal factors of a [11,5] matrix: row 0")));
  EXPECT_THAT([&] { heads_circuits(*family.model, {.random_draws = 0}); },
              ThrowsMessage<UsageError>("`random_draws`: expected an integer from 1 to 2147483647, got 0"));
}

TEST(HeadsCircuits, RandomHeadsComposeAsTheBaselineSays) {
  CausalConfig config = test::gpt_config();
  config.embedding.d_model = config.stack.d_model = 97;
  config.stack.norm = {.placement = NormPlacement::kPost};
  config.stack.layers = std::vector<LayerConfig>(
      2, {.self_attention = {.heads = 7, .d_key = 11, .d_value = 13}, .feed_forward = {.d_ff = 11}});
  const CircuitsReport found = heads_circuits(*test::family_causal(config, 9).model, {.random_draws = 64});
  ASSERT_EQ(found.compositions.size(), 7u * 7u * 3u);
  double sum = 0;
  for (const Composition& c : found.compositions) {
    EXPECT_NEAR(c.random, 1 / std::sqrt(97.0), 0.03 / std::sqrt(97.0));
    sum += c.strength / c.random / static_cast<double>(found.compositions.size());
  }
  EXPECT_NEAR(sum, 1, 0.03);
  EXPECT_TRUE(
      heads_circuits(*test::family_causal(config, 9).model, {.compositions = false}).compositions.empty());
}

TEST(HeadsCircuits, SameBitsForAnyThreads) {
  const CircuitFamily family = test::family_llama();
  const int before = thread_count();
  std::vector<std::string> written;
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    written.push_back(circuits_json("llama", heads_circuits(*family.model)));
  }
  set_thread_count(before);
  EXPECT_EQ(written[0], written[1]);
}

TEST(HeadsCircuits, AsJson) {
  const CircuitsReport found = heads_circuits(*model_by_hand());
  const auto json = nlohmann::json::parse(circuits_json("a model", found));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["model"], "a model");
  EXPECT_EQ(json["circuits"][0]["head"], "decoder.0.self_attention.0");
  EXPECT_EQ(json["circuits"][0]["query_key"]["singular_values"].size(), 2u);
  EXPECT_EQ(json["circuits"][0]["value_output"]["norm"], found.heads[0].value_output.norm);
  EXPECT_EQ(json["circuits"][0]["copying"], *found.heads[0].copying);
  EXPECT_TRUE(json["circuits"][1]["copying"].is_null());
  ASSERT_EQ(json["compositions"].size(), 3u);
  EXPECT_EQ(json["compositions"][1]["part"], "keys");
  EXPECT_EQ(json["compositions"][1]["from"], "decoder.0.self_attention.0");
  EXPECT_EQ(json["compositions"][1]["to"], "decoder.1.self_attention.0");
  EXPECT_EQ(json["compositions"][0]["random"], found.compositions[0].random);
  const auto shortened = nlohmann::json::parse(circuits_json("a model", found, 1));
  ASSERT_EQ(shortened["compositions"].size(), 1u);
  EXPECT_EQ(shortened["compositions"][0]["strength"], found.compositions[0].strength);
}

// A million draws would take hours.
TEST(HeadsCircuits, TheBaselineEndsWhenTheCallerAsks) {
  const std::unique_ptr<Model> model = model_by_hand();
  int asked = 0;
  const StopScope scope([&] { return ++asked > 1; });
  EXPECT_THROW(heads_circuits(*model, {.random_draws = 1'000'000'000}), Interrupted);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace mh
