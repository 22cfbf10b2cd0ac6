// Numbers of each type that GGUF files have, against those that the `gguf` package reads (tests/oracles/gguf_types_goldens.py):
// random blocks, and what each bit of a block does.
#include "multihead/io/gguf_blocks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "multihead/io/gguf.h"
#include "multihead/io/safetensors.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAreArray;

const std::filesystem::path kNumbers = std::filesystem::path(goldens_folder()) / "gguf";
constexpr std::array kEveryType = {GgufType::kF32,  GgufType::kF16,    GgufType::kBF16,   GgufType::kQ4_0,
                                   GgufType::kQ4_1, GgufType::kQ5_0,   GgufType::kQ5_1,   GgufType::kQ8_0,
                                   GgufType::kQ2_K, GgufType::kQ3_K,   GgufType::kQ4_K,   GgufType::kQ5_K,
                                   GgufType::kQ6_K, GgufType::kIQ4_NL, GgufType::kIQ4_XS, GgufType::kMXFP4};

TEST(GgufBlocks, ConvertsNumbersOfEveryType) {
  const GgufFile file = GgufFile::open(kNumbers / "types.gguf");
  const SafetensorsFile expected = SafetensorsFile::open(kNumbers / "types.golden.safetensors");
  ASSERT_EQ(file.tensors().size(), kEveryType.size());
  for (const GgufTensor& tensor : file.tensors()) {
    EXPECT_THAT(tensor.shape, ElementsAreArray(expected.entry(tensor.name).shape)) << tensor.name;
    EXPECT_EQ(file.floats(tensor), expected.floats(tensor.name)) << tensor.name;
    EXPECT_EQ(file.tensor(tensor.name), &tensor);
  }
  EXPECT_EQ(file.tensor("F64"), nullptr);
}

TEST(GgufBlocks, CountsInfinitiesAndNanAsTheyAreStored) {
  std::mt19937 random(7);
  for (const GgufType type : kEveryType) {
    constexpr int64_t kBlocks = 4001;
    const GgufTypeFacts facts = *gguf_type_facts(static_cast<uint32_t>(type));
    std::vector<std::byte> bytes(static_cast<size_t>(kBlocks * facts.bytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    std::vector<float> numbers(static_cast<size_t>(kBlocks * facts.block));
    read_gguf_blocks(type, bytes, numbers);
    const auto bad = std::count_if(numbers.begin(), numbers.end(), [](float x) { return !std::isfinite(x); });
    EXPECT_GT(bad, 0) << facts.name;
    EXPECT_EQ(not_finite_in_gguf_blocks(type, bytes), bad) << facts.name;
  }
}

/// FNV-1a of the bytes of float32, of which all zeros are alike, and all that are not finite: as in gguf_types_goldens.py.
int32_t hash_of_numbers(const std::vector<float>& numbers) {
  uint32_t hash = 2166136261u;
  for (const float number : numbers) {
    const auto bits = !std::isfinite(number) ? 0x7fc0'0000u : std::bit_cast<uint32_t>(number + 0.0f);
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (bits >> shift & 255u)) * 16777619u;
  }
  return static_cast<int32_t>(hash);
}

/// A block whose bytes are all the same, but for float16, which are 1, and the exponent of 1.
std::vector<std::byte> block_of(const GgufTypeFacts& facts, uint8_t byte, std::span<const int> halves) {
  std::vector<std::byte> block(static_cast<size_t>(facts.bytes), std::byte{byte});
  for (const int half : halves) {
    block.at(static_cast<size_t>(half)) = std::byte{0};
    block.at(static_cast<size_t>(half) + 1) = std::byte{0x3c};
  }
  if (halves.empty()) block.at(0) = std::byte{128};
  return block;
}

// Each bit of a block is set alone, and is missing alone. It does to the numbers what it does in the gguf package, and
// shows in one of the two cases.
TEST(GgufBlocks, EachBitOfABlockChangesItsNumbers) {
  const std::map<GgufType, std::vector<int>> halves = {
      {GgufType::kQ4_0, {0}},    {GgufType::kQ4_1, {0, 2}}, {GgufType::kQ5_0, {0}},
      {GgufType::kQ5_1, {0, 2}}, {GgufType::kQ8_0, {0}},    {GgufType::kQ2_K, {80, 82}},
      {GgufType::kQ3_K, {108}},  {GgufType::kQ4_K, {0, 2}}, {GgufType::kQ5_K, {0, 2}},
      {GgufType::kQ6_K, {208}},  {GgufType::kIQ4_NL, {0}},  {GgufType::kIQ4_XS, {0}},
      {GgufType::kMXFP4, {}}};
  const SafetensorsFile golden = SafetensorsFile::open(kNumbers / "bits.golden.safetensors");
  ASSERT_EQ(golden.entries().size(), halves.size());
  for (const auto& [type, places] : halves) {
    const GgufTypeFacts facts = *gguf_type_facts(static_cast<uint32_t>(type));
    const std::vector<int64_t> expected = golden.integers(facts.name);
    const auto bits = static_cast<size_t>(8 * facts.bytes);
    ASSERT_EQ(expected.size(), 2 * bits) << facts.name;
    std::vector<float> numbers(static_cast<size_t>(facts.block));
    std::vector<bool> shows(bits);
    for (const size_t rest : {size_t{0}, size_t{1}}) {
      std::vector<std::byte> block = block_of(facts, rest == 0 ? 0 : 255, places);
      read_gguf_blocks(type, block, numbers);
      const int32_t without = hash_of_numbers(numbers);
      for (size_t bit = 0; bit < bits; ++bit) {
        block[bit / 8] ^= std::byte{1} << bit % 8;
        read_gguf_blocks(type, block, numbers);
        block[bit / 8] ^= std::byte{1} << bit % 8;
        const int32_t hash = hash_of_numbers(numbers);
        EXPECT_EQ(hash, expected[rest * bits + bit]) << facts.name << ", bit " << bit << " of " << rest;
        if (hash != without) shows[bit] = true;
      }
    }
    EXPECT_EQ(std::count(shows.begin(), shows.end(), false), 0) << facts.name;
  }
}

}  // namespace
}  // namespace mh
