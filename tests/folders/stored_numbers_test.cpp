// Numbers of 16 bits stay in the file, as float32 ones do, and have the values that the file says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/folders/tensor_files.h"
#include "multihead/io/safetensors.h"
#include "tests/folders/families/golden_model.h"
#include "tests/folders/gguf_case.h"
#include "tests/io/hostile.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct StoredCase {
  const char *family, *name;
  NumberType type;
};

class StoredNumbersOf : public testing::TestWithParam<StoredCase> {};

TEST_P(StoredNumbersOf, StayInTheFile) {
  const ModelFolder folder = load_model_folder(test::GoldenModel(GetParam().family, GetParam().name).folder);
  int matrices = 0;
  folder.model->visit([&](const std::string& name, const Parameter& parameter) {
    const Weight& value = parameter.value;
    if (value.rows() == 1 || name == "positions") return;
    ++matrices;
    EXPECT_FALSE(value.is_own() || value.is_converted()) << name;
    EXPECT_EQ(value.stored().type, GetParam().type) << name;
  });
  EXPECT_GT(matrices, 10);
}

TEST_P(StoredNumbersOf, AreThoseOfTheFile) {
  int found = 0;
  for (const auto& part :
       fs::directory_iterator(test::GoldenModel(GetParam().family, GetParam().name).folder)) {
    if (part.path().extension() != ".safetensors") continue;  // a file, or one of several shards
    const SafetensorsFile file = SafetensorsFile::open(part.path());
    const TensorFiles files(SafetensorsFile::open(part.path()), "file");
    for (const TensorEntry& entry : file.entries()) {
      if (entry.dtype == DType::kI64) continue;
      const StoredNumbers numbers = files.tensor(entry.name).numbers();
      EXPECT_EQ(numbers.type, GetParam().type);
      EXPECT_TRUE(numbers.in_file);
      EXPECT_EQ(files.floats(entry.name), file.floats(entry.name));
      EXPECT_TRUE(files.same(entry.name, entry.name));
      ++found;
    }
  }
  EXPECT_GT(found, 10);
}

INSTANTIATE_TEST_SUITE_P(Folders, StoredNumbersOf,
                         testing::Values(StoredCase{"llama", "llama3_one_key_f16", NumberType::kFloat16},
                                         StoredCase{"gpt_neo", "wide_f16", NumberType::kFloat16},
                                         StoredCase{"llama", "untied_biased_linear_bf16",
                                                    NumberType::kBFloat16},
                                         StoredCase{"gpt2", "untied_shards_bf16", NumberType::kBFloat16},
                                         StoredCase{"llama", "tied_grouped", NumberType::kFloat32}),
                         [](const auto& of) { return std::string(of.param.family) + "_" + of.param.name; });

// An infinite number and one that is none, in bytes of float16.
TEST(StoredFloat16, ThatIsNotFiniteIsRefused) {
  const test::ScratchFolder scratch;
  const fs::path folder = scratch / "model";
  fs::copy(test::GoldenModel("llama", "llama3_one_key_f16").folder, folder, fs::copy_options::recursive);
  const fs::path path = folder / "model.safetensors";
  const std::string tensor = "layers.0.mlp.up_proj.weight";
  const TensorEntry entry = SafetensorsFile::open(path).entry(tensor);
  std::string bytes = read_file(path);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (const auto& [at, bits] : {std::pair<uint64_t, uint16_t>{3, 0xFC00}, {8, 0x7C01}})
    std::memcpy(bytes.data() + 8 + header + entry.begin + 2 * at, &bits, sizeof bits);
  write_file_atomically(path, bytes);
  test::expect_one_line_error(
      [&] { load_model_folder(folder); },
      "not finite: 2 of " + std::to_string(entry.elements()) + " numbers of " + tensor, "float16");
}

TEST(StoredFloat16, OfGgufStaysInTheFileWhereRowsAreInOrder) {
  const test::ScratchFolder scratch;
  test::GgufSpec spec = test::small_gguf();
  for (test::GgufTensorSpec& tensor : spec.tensors) {
    if (tensor.sizes.size() < 2) continue;
    tensor.type = 1;
    std::string halves;
    for (size_t i = 0; i < tensor.data.size() / 4; ++i)
      halves += test::little_endian(to_float16(0.25f * static_cast<float>(i)));
    tensor.data = halves;
  }
  write_file_atomically(scratch / "small.gguf", spec.bytes());
  const ModelFolder folder = load_model_folder(scratch / "small.gguf");
  int in_file = 0, converted = 0;
  folder.model->visit([&](const std::string& name, const Parameter& parameter) {
    const Weight& value = parameter.value;
    if (value.rows() == 1) return;
    const bool changes_places = name.ends_with(".w_q") || name.ends_with(".w_k");
    EXPECT_FALSE(value.is_own()) << name;
    EXPECT_EQ(value.is_converted(), changes_places) << name;
    ++(changes_places ? converted : in_file);
    const BorrowedMatrix numbers = value.borrow();
    EXPECT_EQ(numbers.matrix.type, changes_places ? NumberType::kFloat32 : NumberType::kFloat16) << name;
    const bool is_table = name == "embedding" || name == "output";
    const int64_t inner = is_table ? value.cols() : value.rows();
    for (int64_t i = 0; !changes_places && i < value.rows(); ++i) {
      for (int64_t j = 0; j < value.cols(); ++j) {
        const int64_t place = is_table ? i * inner + j : j * inner + i;
        ASSERT_EQ(numbers.matrix(i, j), 0.25f * static_cast<float>(place)) << name;
      }
    }
  });
  EXPECT_EQ(in_file, 7);
  EXPECT_EQ(converted, 2);
}

TEST(StoredFloat16, IsNotWritten) {
  const test::ScratchFolder scratch;
  const ModelFolder folder = load_model_folder(test::GoldenModel("llama", "llama3_one_key_f16").folder);
  EXPECT_THAT([&] { save_model_folder(scratch / "saved", folder, {.type = NumberType::kFloat16}); },
              ThrowsMessage<UsageError>(HasSubstr("as float32 or bfloat16, not as float16")));
  EXPECT_FALSE(fs::exists(scratch / "saved"));
}

}  // namespace
}  // namespace mh
