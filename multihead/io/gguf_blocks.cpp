#include "multihead/io/gguf_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/not_finite.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/io/gguf_unpack.h"

namespace mh {
namespace {

void unpack_f32(const std::byte* at, float* out) {
  std::memcpy(out, at, sizeof *out);
}
void unpack_f16(const std::byte* at, float* out) {
  *out = float16_at(at);
}
void unpack_bf16(const std::byte* at, float* out) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  *out = from_bfloat16(bits);
}

/// All blocks of a row, so that a block of one number costs no call.
template <void (*unpack)(const std::byte*, float*), int64_t size, int64_t bytes>
void unpack_all(const std::byte* at, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b) unpack(at + b * bytes, out + b * size);
}

template <BlockType type>
void unpack_blocks(const std::byte* at, int64_t blocks, float* out) {
  constexpr BlockLayout kLayout = block_layout(type);
  for (int64_t b = 0; b < blocks; ++b) unpack_block(type, at + b * kLayout.bytes, out + b * kLayout.numbers);
}

constexpr int kNone = -1;

struct ReadType {
  GgufTypeFacts facts;
  void (*unpack)(const std::byte* at, int64_t blocks, float* out);
  /// The bytes of a block before its float16 d, and m: the block is finite when they are. kNone: it has none.
  int scale = kNone, least = kNone;
};

template <void (*unpack)(const std::byte*, float*), int64_t size, int64_t bytes>
constexpr ReadType read_type(GgufType type, const char* name, int scale = kNone, int least = kNone) {
  return {{type, name, size, bytes}, unpack_all<unpack, size, bytes>, scale, least};
}

template <BlockType type>
constexpr ReadType read_block_type(GgufType number, const char* name, int scale, int least = kNone) {
  constexpr BlockLayout kLayout = block_layout(type);
  return {{number, name, kLayout.numbers, kLayout.bytes, type}, unpack_blocks<type>, scale, least};
}

constexpr std::array kTypesRead = {
    read_type<unpack_f32, 1, 4>(GgufType::kF32, "F32"),
    read_type<unpack_f16, 1, 2>(GgufType::kF16, "F16", 0),
    read_type<unpack_bf16, 1, 2>(GgufType::kBF16, "BF16"),
    read_block_type<BlockType::kQ4_0>(GgufType::kQ4_0, "Q4_0", 0),
    read_block_type<BlockType::kQ4_1>(GgufType::kQ4_1, "Q4_1", 0, 2),
    read_block_type<BlockType::kQ5_0>(GgufType::kQ5_0, "Q5_0", 0),
    read_block_type<BlockType::kQ5_1>(GgufType::kQ5_1, "Q5_1", 0, 2),
    read_block_type<BlockType::kQ8_0>(GgufType::kQ8_0, "Q8_0", 0),
    read_block_type<BlockType::kQ2_K>(GgufType::kQ2_K, "Q2_K", 80, 82),
    read_block_type<BlockType::kQ3_K>(GgufType::kQ3_K, "Q3_K", 108),
    read_block_type<BlockType::kQ4_K>(GgufType::kQ4_K, "Q4_K", 0, 2),
    read_block_type<BlockType::kQ5_K>(GgufType::kQ5_K, "Q5_K", 0, 2),
    read_block_type<BlockType::kQ6_K>(GgufType::kQ6_K, "Q6_K", 208),
    read_block_type<BlockType::kIQ4_NL>(GgufType::kIQ4_NL, "IQ4_NL", 0),
    read_block_type<BlockType::kIQ4_XS>(GgufType::kIQ4_XS, "IQ4_XS", 0),
    read_block_type<BlockType::kMXFP4>(GgufType::kMXFP4, "MXFP4", kNone),
};

/// The names of the others, for messages (ggml.h, enum ggml_type).
constexpr std::array<std::pair<uint32_t, const char*>, 18> kOtherTypes = {{{9, "Q8_1"},
                                                                           {15, "Q8_K"},
                                                                           {16, "IQ2_XXS"},
                                                                           {17, "IQ2_XS"},
                                                                           {18, "IQ3_XXS"},
                                                                           {19, "IQ1_S"},
                                                                           {21, "IQ3_S"},
                                                                           {22, "IQ2_S"},
                                                                           {24, "I8"},
                                                                           {25, "I16"},
                                                                           {26, "I32"},
                                                                           {27, "I64"},
                                                                           {28, "F64"},
                                                                           {29, "IQ1_M"},
                                                                           {34, "TQ1_0"},
                                                                           {35, "TQ2_0"},
                                                                           {40, "NVFP4"},
                                                                           {41, "Q1_0"}}};

const ReadType* find_type(uint32_t type) {
  const auto* const found = std::find_if(kTypesRead.begin(), kTypesRead.end(), [&](const ReadType& read) {
    return static_cast<uint32_t>(read.facts.type) == type;
  });
  return found == kTypesRead.end() ? nullptr : found;
}

const ReadType& type_of(GgufType type) {
  const ReadType* const found = find_type(static_cast<uint32_t>(type));
  MH_ASSERT(found != nullptr);
  return *found;
}

/// Blocks whose numbers may overflow one by one.
int64_t count_unpacked(const ReadType& read, const std::byte* at, int64_t blocks) {
  std::array<float, 256> numbers{};
  int64_t bad = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    read.unpack(at + b * read.facts.bytes, 1, numbers.data());
    bad += std::count_if(numbers.begin(), numbers.begin() + read.facts.block,
                         [](float x) { return !std::isfinite(x); });
  }
  return bad;
}

}  // namespace

std::optional<GgufTypeFacts> gguf_type_facts(uint32_t type) {
  const ReadType* const found = find_type(type);
  return found == nullptr ? std::nullopt : std::optional(found->facts);
}

std::string gguf_type_name(uint32_t type) {
  if (const auto facts = gguf_type_facts(type)) return facts->name;
  for (const auto& [number, name] : kOtherTypes) {
    if (number == type) return name;
  }
  return fmt::format("type {}", type);
}

std::string gguf_types_read() {
  std::string names;
  for (const ReadType& read : kTypesRead) names += (names.empty() ? "" : ", ") + std::string(read.facts.name);
  return names;
}

void read_gguf_blocks(GgufType type, std::span<const std::byte> bytes, std::span<float> out) {
  const ReadType& read = type_of(type);
  const auto blocks = static_cast<int64_t>(out.size()) / read.facts.block;
  MH_ASSERT(blocks * read.facts.block == static_cast<int64_t>(out.size()) &&
            blocks * read.facts.bytes == static_cast<int64_t>(bytes.size()));
  read.unpack(bytes.data(), blocks, out.data());
}

int64_t not_finite_in_gguf_blocks(GgufType type, std::span<const std::byte> bytes) {
  const ReadType& read = type_of(type);
  const auto [size, stride] = std::pair{read.facts.block, read.facts.bytes};
  const std::byte* const at = bytes.data();
  const auto blocks = static_cast<int64_t>(bytes.size()) / stride;
  if (type == GgufType::kF32) return count_not_finite(at, blocks, kFloat32Exponent);
  if (type == GgufType::kBF16) return count_not_finite(at, blocks, kBFloat16Exponent);
  if (read.scale == kNone) return count_unpacked(read, at, blocks);
  if (read.least == kNone) return size * count_not_finite(at + read.scale, blocks, kFloat16Exponent, stride);
  int64_t bad = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const std::byte* const block = at + b * stride;
    bad += count_not_finite(block + read.scale, 1, kFloat16Exponent) +
                       count_not_finite(block + read.least, 1, kFloat16Exponent) >
                   0
               ? size
               : 0;
  }
  return bad;
}

}  // namespace mh
