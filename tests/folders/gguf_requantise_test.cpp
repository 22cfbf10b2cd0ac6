// The same GGUF file with matrices of fewer bits.
#include "multihead/folders/gguf_requantise.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/quantise_blocks.h"
#include "tests/folders/gguf_case.h"
#include "tests/io/hostile.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

class RequantisedGguf : public testing::Test {
 protected:
  RequantisedGguf() {
    // Rows of 96 numbers are whole blocks; those of ffn_down, 37, are not.
    spec = test::with_random_numbers(test::small_gguf(32, 37), 5);
    spec.values.emplace_back("general.file_type", test::gguf_u32(0));
    spec.values.emplace_back("other.key", test::gguf_strings({"as", "it", "is"}));
    spec.values.emplace_back("quantize.imatrix.file", test::gguf_string("of another file"));
  }
  GgufFile before() const { return GgufFile::from_bytes(spec.bytes(), "before.gguf"); }
  GgufFile requantised(BlockType type) {
    requantise_gguf(before(), type, path);
    return GgufFile::open(path);
  }

  test::GgufSpec spec;
  const test::ScratchFolder scratch;
  const std::filesystem::path path = scratch / "after.gguf";
};

TEST_F(RequantisedGguf, MatricesOfWholeBlocksAreQuantisedAndAllElseIsCopied) {
  const GgufFile given = before();
  for (const auto& [type, as, number] :
       {std::tuple{BlockType::kQ8_0, GgufType::kQ8_0, 7}, {BlockType::kQ4_0, GgufType::kQ4_0, 2}}) {
    const GgufFile made = requantised(type);
    ASSERT_EQ(made.tensors().size(), given.tensors().size());
    for (const GgufTensor& tensor : given.tensors()) {
      const GgufTensor& after = *made.tensor(tensor.name);
      EXPECT_EQ(after.shape, tensor.shape);
      if (tensor.shape.size() == 1 || tensor.name == "blk.0.ffn_down.weight") {
        EXPECT_EQ(after.type, GgufType::kF32) << tensor.name;
        EXPECT_EQ(std::memcmp(after.bytes.data(), tensor.bytes.data(), tensor.bytes.size()), 0);
        continue;
      }
      const bool output = tensor.name == "output.weight";
      EXPECT_EQ(after.type, output ? GgufType::kQ8_0 : as) << tensor.name;
      std::vector<std::byte> blocks(after.bytes.size());
      ASSERT_TRUE(quantise_blocks(output ? BlockType::kQ8_0 : type, given.floats(tensor), blocks));
      EXPECT_EQ(std::memcmp(after.bytes.data(), blocks.data(), blocks.size()), 0) << tensor.name;
    }
    for (const std::string_view key : given.keys()) {
      if (key == "general.file_type" || key == "quantize.imatrix.file") continue;
      EXPECT_EQ(made.stored(key), given.stored(key)) << key;
    }
    EXPECT_EQ(made.integer("general.file_type", 0, 99), number);
    EXPECT_EQ(made.integer("general.quantization_version", 0, 99), 2);
    EXPECT_FALSE(made.contains("quantize.imatrix.file"));
    EXPECT_EQ(load_model_folder(path).model->parameter_count(),
              load_model_folder(open_gguf_folder(given)).model->parameter_count());
  }
}

// An embedding that is the output layer, too, keeps 8 bits with Q4_0.
TEST_F(RequantisedGguf, TiedEmbeddingsAreTheOutputLayer) {
  std::erase_if(spec.tensors, [](const auto& tensor) { return tensor.name == "output.weight"; });
  const GgufFile made = requantised(BlockType::kQ4_0);
  EXPECT_EQ(made.tensor("token_embd.weight")->type, GgufType::kQ8_0);
  EXPECT_EQ(made.tensor("blk.0.attn_q.weight")->type, GgufType::kQ4_0);
}

TEST_F(RequantisedGguf, MatricesThatWouldNotBeSmallerStayAsTheyAre) {
  requantise_gguf(before(), BlockType::kQ4_0, path);
  const GgufFile small = GgufFile::open(path);
  test::expect_one_line_error([&] { requantise_gguf(small, BlockType::kQ8_0, scratch / "never.gguf"); },
                              "no matrix would be smaller in Q8_0", "Q4_0 to Q8_0");
  EXPECT_FALSE(is_there(scratch / "never.gguf"));
  // Some of them are.
  spec.tensor("blk.0.attn_v.weight").type = 2;
  spec.tensor("blk.0.attn_v.weight").data = std::string(32 * 96 / 32 * 18, '\0');
  const GgufFile mixed = requantised(BlockType::kQ8_0);
  EXPECT_EQ(mixed.tensor("blk.0.attn_v.weight")->type, GgufType::kQ4_0);
  EXPECT_EQ(mixed.tensor("blk.0.attn_q.weight")->type, GgufType::kQ8_0);
}

TEST_F(RequantisedGguf, NumbersThatAreNotFiniteThereAreRefused) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), 3e38f}) {
    std::memcpy(spec.tensor("blk.0.ffn_up.weight").data.data() + 4 * 1001, &bad, sizeof bad);
    test::expect_one_line_error([&] { requantise_gguf(before(), BlockType::kQ8_0, path); },
                                "tensor blk.0.ffn_up.weight has numbers that are not finite", "ffn_up");
    EXPECT_FALSE(is_there(path));
  }
}

// Every file that is cut short, and many with a byte that is another, is a model or an error of one line.
TEST_F(RequantisedGguf, DamagedFilesAreRefusedInOneLine) {
  requantise_gguf(before(), BlockType::kQ4_0, path);
  const std::string whole = read_file(path);
  const auto try_bytes = [](std::string bytes, const std::string& what) {
    try {
      load_model_folder(open_gguf_folder(GgufFile::from_bytes(std::move(bytes), "damaged.gguf")));
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << what;
      return false;
    }
    return true;
  };
  EXPECT_TRUE(try_bytes(whole, "whole"));
  const size_t last = whole.size() - 37 * 4 - 64;  // before the padding and the end of the last tensor
  for (size_t size = 0; size < last; size += 61)
    EXPECT_FALSE(try_bytes(whole.substr(0, size), "cut at " + std::to_string(size)));
  for (size_t at = 0; at < 2500; at += 13) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    try_bytes(std::move(bytes), "byte " + std::to_string(at));
  }
}

}  // namespace
}  // namespace mh
