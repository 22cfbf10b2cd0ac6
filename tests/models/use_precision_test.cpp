// use_precision() reaches every parameter of a model of each kind, and what was packed before it.
#include "multihead/models/use_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/weight_uses.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::StartsWith;
using testing::ThrowsMessage;

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

// Of weights that are numbers; tests/folders/weights_used_test.cpp has blocks.
TEST(UsePrecision, TakesTheKernelThatIsNamed) {
  for (const auto& model : models_of_each_kind()) {
    for (const auto& [name, contract] : kPrecisionNames) {
      for (const ProductKernel kernel : kernels_of(contract, WeightsKind::kNumbers, processor_features())) {
        const PrecisionChoice choice(contract, kernel);
        use_precision(*model, choice);
        int64_t products = 0;
        model->visit([&](const std::string& parameter_name, Parameter& parameter) {
          EXPECT_EQ(parameter.precision, choice);
          const auto form = packed_form(parameter, choice);
          if (!form) return;
          ++products;
          EXPECT_EQ(form->kernel, *choice.kernel) << parameter_name;
        });
        EXPECT_GT(products, 4);
      }
    }
  }
}

TEST(UsePrecision, RefusesAKernelThatTheMachineDoesNotHave) {
  for (const auto& model : models_of_each_kind()) {
    use_precision(*model, Precision::kFast);
    for (const auto& [name, kernel] : kProductKernelNames) {
      const PrecisionChoice choice(Precision::kNear, kernel);
      if (is_here(choice)) continue;
      EXPECT_THAT([&] { use_precision(*model, choice); },
                  ThrowsMessage<UsageError>(
                      AllOf(StartsWith("`precision`: expected near|near:"),
                            EndsWith(std::string("(the kernels that this machine has), got near:") + name))));
    }
    EXPECT_THROW(use_precision(*model, {Precision::kFast, ProductKernel::kFloat32}), UsageError);
    EXPECT_THROW(use_precision(*model, {Precision::kSame, ProductKernel::kBFloat16Dots}), UsageError);
    model->visit([](const std::string& name, const Parameter& parameter) {
      EXPECT_EQ(parameter.precision, PrecisionChoice(Precision::kFast)) << name << ": nothing was changed";
    });
  }
}

// Integers serve near where weights are blocks, and these models have none.
TEST(UsePrecision, RefusesAKernelThatHasNothingToMultiply) {
  const ProductKernel blocks = kernel_for(Precision::kNear, WeightsKind::kBlocks);
  for (const auto& model : models_of_each_kind())
    EXPECT_THAT(
        [&] {
          use_precision(*model, {Precision::kNear, blocks});
        },
        ThrowsMessage<UsageError>(EndsWith("multiplies with none of the model's weights; take near")));
}

// The matrices that a forward pass multiplies with, and no others.
TEST(WeightUses, AreThoseOfProducts) {
  for (const auto& model : models_of_each_kind()) {
    const std::vector<WeightUse> uses = weight_uses(*model, Precision::kSame);
    ASSERT_EQ(std::ssize(uses), std::ssize(named_parameters(*model)));
    for (const WeightUse& use : uses) {
      const bool is_table = use.name.find("embedding") != std::string::npos ||
                            use.name.find("position") != std::string::npos || use.rows == 1;
      if (!is_table) {
        EXPECT_TRUE(use.form) << use.name;
      }
      if (use.rows == 1) {
        EXPECT_FALSE(use.form) << use.name;
      }
      if (use.form) {
        EXPECT_GE(use.form->bytes, use.rows * use.cols * 4) << use.name;
      }
    }
  }
}

}  // namespace
}  // namespace mh
