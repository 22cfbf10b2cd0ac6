// The table of kernels: that it is complete, what it chooses, and that it chooses what was measured as the fastest.
#include "multihead/kernels/product_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/kernels/simd.h"
#include "tests/kernels/on_target.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;

constexpr Features kZen4 = {Feature::kAvx512, Feature::kAvx512Vnni, Feature::kAvx512Bf16, Feature::kAmd},
                   kSapphireRapids = {Feature::kAvx512, Feature::kAvx512Vnni, Feature::kAvx512Bf16,
                                      Feature::kAvxVnni},
                   kSkylakeServer = {Feature::kAvx512}, kAlderLake = {Feature::kAvx2, Feature::kAvxVnni},
                   kHaswell = {Feature::kAvx2}, kNeon = {Feature::kOtherVectors};

TEST(ProductKernels, AreChosenByTheProcessor) {
  const auto chosen = [](Features processor) {
    for (const auto& [name, weights] : kWeightsKindNames)
      EXPECT_EQ(kernel_for(Precision::kSame, weights, processor), ProductKernel::kFloat32) << name;
    const ProductKernel fast = kernel_for(Precision::kFast, WeightsKind::kNumbers, processor);
    for (const Precision contract : {Precision::kNear, Precision::kFast})
      EXPECT_EQ(kernel_for(contract, WeightsKind::kBlocks, processor), fast);
    return std::pair(kernel_for(Precision::kNear, WeightsKind::kNumbers, processor), fast);
  };
  constexpr ProductKernel kFloat32 = ProductKernel::kFloat32;
  EXPECT_EQ(chosen(kZen4), std::pair(ProductKernel::kBFloat16Dots, ProductKernel::kInt8Avx512Vnni));
  EXPECT_EQ(chosen(kSapphireRapids), std::pair(kFloat32, ProductKernel::kInt8Avx512Vnni));
  EXPECT_EQ(chosen(kSkylakeServer), std::pair(kFloat32, ProductKernel::kInt8Avx512));
  EXPECT_EQ(chosen(kAlderLake), std::pair(kFloat32, ProductKernel::kInt8AvxVnni));
  EXPECT_EQ(chosen(kHaswell), std::pair(kFloat32, ProductKernel::kInt8Avx2));
  EXPECT_EQ(chosen(kNeon), std::pair(kFloat32, ProductKernel::kInt8Plain));
}

TEST(ProductKernels, AreThoseThatTheProcessorCanRun) {
  EXPECT_THAT(kernels_of(Precision::kNear, WeightsKind::kNumbers, kSapphireRapids),
              ElementsAre(ProductKernel::kBFloat16Dots, ProductKernel::kFloat32));
  EXPECT_THAT(kernels_of(Precision::kNear, WeightsKind::kNumbers, kHaswell),
              ElementsAre(ProductKernel::kFloat32));
  EXPECT_THAT(kernels_of(Precision::kFast, std::nullopt, kZen4),
              ElementsAre(ProductKernel::kInt8Avx512Vnni, ProductKernel::kInt8Avx512));
  EXPECT_THAT(kernels_of(Precision::kSame, std::nullopt, kNeon), ElementsAre(ProductKernel::kFloat32));
  for (const auto& [name, kernel] : kProductKernelNames) {
    const auto has = [kernel = kernel](const auto& row) { return row.kernel == kernel; };
    EXPECT_EQ(std::count_if(std::begin(kKernelNeeds), std::end(kKernelNeeds), has), 1) << name;
    EXPECT_TRUE(std::any_of(std::begin(kKernelRules), std::end(kKernelRules), has)) << name;
    EXPECT_TRUE(runs(kernel, kZen4) || runs(kernel, kAlderLake) || runs(kernel, kNeon)) << name;
  }
}

class NamesOfPrecisions : public testing::TestWithParam<std::string> {
 private:
  OnTarget on_{GetParam()};
};

TEST_P(NamesOfPrecisions, AreReadAsTheyAreWritten) {
  const Features here = processor_features();
  EXPECT_EQ(here.has(Feature::kAvx512) + here.has(Feature::kAvx2) + here.has(Feature::kOtherVectors), 1);
  for (const auto& [name, contract] : kPrecisionNames) {
    EXPECT_EQ(precision_named(name), PrecisionChoice(contract));
    EXPECT_EQ(precision_name(contract), name);
    const std::vector<ProductKernel> all = kernels_of(contract, std::nullopt, here);
    EXPECT_FALSE(all.empty());
    for (const auto& [kernel_name, kernel] : kProductKernelNames) {
      const std::string both = std::string(name) + ":" + kernel_name;
      const bool has = std::find(all.begin(), all.end(), kernel) != all.end();
      EXPECT_EQ(precision_name({contract, kernel}), both);
      EXPECT_EQ(is_here({contract, kernel}), has) << both;
      EXPECT_EQ(precision_named(both), has ? std::optional(PrecisionChoice(contract, kernel)) : std::nullopt)
          << both;
      EXPECT_EQ(precisions_like(both).find(both) != std::string::npos, has) << precisions_like(both);
    }
  }
  for (const char* wrong : {"", ":", "slow", "fast:", "fast:slow", "slow:float32", "float32", "fast:float32",
                            "same:", "Fast", "fast:int8-avx2:x"})
    EXPECT_EQ(precision_named(wrong), std::nullopt) << wrong;
  EXPECT_EQ(precisions_like("slow:float32"), "same|near|fast");
  EXPECT_EQ(precisions_like("same:x"), "same|same:float32 (the kernels that this machine has)");
}

INSTANTIATE_TEST_SUITE_P(Targets, NamesOfPrecisions, testing::ValuesIn(dispatch_targets()),
                         [](const auto& tested) { return tested.param; });

// Of the kernels that were measured side by side, the table takes the one that is fastest with many rows; with one row, where
// memory decides, none is faster by a tenth.
TEST(ProductKernels, AreTheFastestOfThoseThatWereMeasured) {
  const auto measured =
      nlohmann::json::parse(read_file(source_folder() + "/benchmarks/results/kernels.json"));
  Features processor{};
  for (const auto& name : measured["features"]) {
    const auto feature = value_named(name.get<std::string>(), kFeatureNames);
    ASSERT_TRUE(feature) << name;
    processor.add(*feature);
  }
  EXPECT_EQ(processor, kZen4);
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<nlohmann::json>> rivals;
  for (const auto& product : measured["products"])
    rivals[{product["contract"], product["weights"], product["kind"]}].push_back(product);
  EXPECT_EQ(rivals.size(), 3u * 7u);
  size_t choices = 0;
  for (const auto& [of, products] : rivals) {
    const auto contract = value_named(std::get<0>(of), kPrecisionNames);
    const auto kind = value_named(std::get<2>(of), kWeightsKindNames);
    ASSERT_TRUE(contract && kind);
    EXPECT_EQ(products.size(), kernels_of(*contract, *kind, processor).size());
    const std::string taken = name_of(kernel_for(*contract, *kind, processor), kProductKernelNames);
    const auto of_taken = std::find_if(products.begin(), products.end(),
                                       [&](const auto& product) { return product["kernel"] == taken; });
    ASSERT_NE(of_taken, products.end()) << taken;
    for (const auto& product : products) {
      EXPECT_GE((*of_taken)["rows_96"].get<double>(), product["rows_96"].get<double>()) << product;
      EXPECT_GE((*of_taken)["rows_1"].get<double>(), 0.9 * product["rows_1"].get<double>()) << product;
    }
    choices += products.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(choices, 10u);
}

}  // namespace
}  // namespace mh
