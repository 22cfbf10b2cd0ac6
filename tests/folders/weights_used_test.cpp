// What weights of files are packed as takes the bytes that `info` says, by the kernel that it says.
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/gguf.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/models/use_precision.h"
#include "multihead/models/weight_uses.h"
#include "tests/support/places.h"

namespace mh {
namespace {

class WeightsUsed : public testing::TestWithParam<std::string> {
 protected:
  const ModelFolder folder_ = load_model_folder(goldens_folder() + "/" + GetParam());
};

TEST_P(WeightsUsed, TakeTheBytesThatAreSaid) {
  int64_t products = 0;
  for (const auto& [precision_name, precision] : kPrecisionNames) {
    use_precision(*folder_.model, precision);
    const std::vector<WeightUse> uses = weight_uses(*folder_.model, precision);
    auto use = uses.begin();
    for (const NamedParameter& named : named_parameters(*folder_.model)) {
      SCOPED_TRACE(precision_name + (" " + named.name));
      ASSERT_NE(use, uses.end());
      EXPECT_EQ(use->name, named.name);
      const ReadBy read_by = named.parameter->read_by;
      if (read_by == ReadBy::kProduct || read_by == ReadBy::kTransposedProduct) {
        const PackedParameters alone({named.parameter}, read_by == ReadBy::kProduct
                                                            ? RightFactor::kSideBySide
                                                            : RightFactor::kTransposed);
        const PackedMatrix& packed = alone.packed();
        ASSERT_TRUE(use->form);
        EXPECT_EQ(packed.bytes(), use->form->bytes);
        EXPECT_EQ(packed.kind(), use->form->kind);
        EXPECT_EQ(packed.kernel(), use->form->kernel);
        ++products;
      }
      ++use;
    }
    EXPECT_EQ(use, uses.end());
  }
  EXPECT_GT(products, 3 * 7);
}

INSTANTIATE_TEST_SUITE_P(Files, WeightsUsed,
                         testing::Values("gguf/tied_quantised.gguf", "gguf/untied_llama3.gguf",
                                         "marian/gelu_f16", "marian/swish_bf16_separate", "gpt2/tied",
                                         "llama/llama3_one_key_f16"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& letter : name) {
                             if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
                           }
                           return name;
                         });

// A file's tensors are the parameters': bytes of each type add up.
TEST(WeightsStored, AreThoseOfTheFile) {
  const std::string path = goldens_folder() + "/gguf/tied_quantised.gguf";
  const GgufFile file = GgufFile::open(path);
  std::map<std::string, int64_t> in_file, in_model;
  for (const GgufTensor& tensor : file.tensors())
    in_file[gguf_type_name(static_cast<uint32_t>(tensor.type))] += std::ssize(tensor.bytes);
  const ModelFolder folder = load_model_folder(path);
  for (const WeightUse& use : weight_uses(*folder.model, Precision::kSame))
    in_model[use.stored.type] += use.stored.bytes;
  EXPECT_EQ(in_model, in_file);
}

// Blocks are multiplied by other kernels than numbers; this file has nothing else in its products.
TEST(WeightsStored, AsBlocksHaveKernelsOfTheirOwn) {
  const ModelFolder folder = load_model_folder(goldens_folder() + "/gguf/tied_quantised.gguf");
  for (const ProductKernel kernel : kernels_of(Precision::kNear, std::nullopt, processor_features())) {
    const PrecisionChoice choice(Precision::kNear, kernel);
    if (!is_int8(kernel)) {
      EXPECT_THROW(use_precision(*folder.model, choice), UsageError);
      continue;
    }
    use_precision(*folder.model, choice);
    for (const WeightUse& use : weight_uses(*folder.model, choice)) {
      if (use.form) {
        EXPECT_EQ(use.form->kernel, kernel) << use.name;
      }
    }
  }
}

}  // namespace
}  // namespace mh
