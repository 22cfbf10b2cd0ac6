// Blocks that are made here, beside those of the `gguf` package (tests/oracles/quantise_goldens.py).
#include "multihead/io/quantise_blocks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/io/gguf_blocks.h"
#include "multihead/io/safetensors.h"
#include "tests/support/places.h"

namespace mh {
namespace {

constexpr std::pair<const char*, BlockType> kQuantised[] = {{"Q8_0", BlockType::kQ8_0},
                                                            {"Q4_0", BlockType::kQ4_0}};

TEST(QuantiseBlocks, HaveTheBitsOfTheGgufPackage) {
  const std::filesystem::path folder = std::filesystem::path(goldens_folder()) / "gguf";
  const SafetensorsFile golden = SafetensorsFile::open(folder / "quantised.golden.safetensors");
  const std::vector<float> numbers = golden.floats("numbers");
  for (const auto& [name, type] : kQuantised) {
    const std::string expected = golden.bytes(name);
    std::string bytes(expected.size(), '\0');
    EXPECT_TRUE(quantise_blocks(type, numbers, std::as_writable_bytes(std::span(bytes))));
    EXPECT_EQ(bytes, expected) << name;
  }
}

TEST(QuantiseBlocks, QuantisedAgainStayAsTheyAre) {
  std::vector<float> numbers(96);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
  for (const auto& [name, type] : kQuantised) {
    const GgufType in_file = type == BlockType::kQ8_0 ? GgufType::kQ8_0 : GgufType::kQ4_0;
    const auto bytes = static_cast<size_t>(block_layout(type).bytes) * 3;
    std::vector<std::byte> once(bytes), twice(bytes);
    ASSERT_TRUE(quantise_blocks(type, numbers, once));
    std::vector<float> rounded(numbers.size());
    read_gguf_blocks(in_file, once, rounded);
    ASSERT_TRUE(quantise_blocks(type, rounded, twice));
    std::vector<float> again(numbers.size());
    read_gguf_blocks(in_file, twice, again);
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_NEAR(rounded[i], numbers[i], type == BlockType::kQ8_0 ? 0.2 : 6.3) << name << " " << i;
      EXPECT_NEAR(again[i], rounded[i], 1e-3 * 50) << name << " " << i;
    }
  }
}

TEST(QuantiseBlocks, SayWhenNumbersAreNotFiniteThere) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [name, type] : kQuantised) {
    std::vector<std::byte> bytes(static_cast<size_t>(block_layout(type).bytes) * 2);
    for (const float bad : {kInfinity, std::numeric_limits<float>::quiet_NaN(), 127 * 65536.0f}) {
      std::vector<float> numbers(64, 0.5f);
      EXPECT_TRUE(quantise_blocks(type, numbers, bytes)) << name;
      numbers[43] = bad;
      EXPECT_FALSE(quantise_blocks(type, numbers, bytes)) << name << " " << bad;
    }
  }
}

}  // namespace
}  // namespace mh
