// use_precision() reaches every parameter of a model of each kind, and what was packed before it.
#include "multihead/models/use_precision.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

std::vector<std::unique_ptr<Model>> models_of_each_kind() {
  const LayerConfig layer{.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 17}};
  EncoderConfig encoder;
  encoder.embedding = {.vocabulary = 37, .d_model = 12, .token_types = 2};
  encoder.max_positions = 19;
  encoder.stack = {.d_model = 12, .layers = {layer}};
  encoder.masked_words = MaskedWordsConfig{};
  CausalConfig causal;
  causal.embedding = {.vocabulary = 31, .d_model = 12};
  causal.max_positions = 19;
  causal.stack = {.name = "decoder", .d_model = 12, .layers = {layer, layer}, .mask = StackMask::causal()};
  std::vector<std::unique_ptr<Model>> models;
  models.push_back(std::make_unique<EncoderModel>(encoder));
  models.push_back(std::make_unique<CausalModel>(causal));
  models.push_back(std::make_unique<EncoderDecoder>(small_shape().config()));
  return models;
}

TEST(UsePrecision, ReachesEveryParameter) {
  for (const auto& model : models_of_each_kind()) {
    int64_t parameters = 0;
    for (const Precision precision : {Precision::kFast, Precision::kNear, Precision::kSame}) {
      use_precision(*model, precision);
      model->visit([&](const std::string& name, Parameter& parameter) {
        EXPECT_EQ(parameter.precision, precision) << name;
        ++parameters;
      });
    }
    EXPECT_GT(parameters, 3 * 15);
  }
}

// Packed copies are made again only where something changed.
TEST(UsePrecision, ChangesVersionsOnlyWhereItIsAnother) {
  for (const auto& model : models_of_each_kind()) {
    const auto versions = [&] {
      std::vector<uint64_t> found;
      model->visit([&](const std::string&, Parameter& parameter) { found.push_back(parameter.version); });
      return found;
    };
    const std::vector<uint64_t> before = versions();
    use_precision(*model, Precision::kSame);
    EXPECT_EQ(versions(), before);
    use_precision(*model, Precision::kNear);
    const std::vector<uint64_t> after = versions();
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) EXPECT_GT(after[i], before[i]) << i;
  }
}

}  // namespace
}  // namespace mh
