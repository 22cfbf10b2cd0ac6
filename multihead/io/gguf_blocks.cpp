#include "multihead/io/gguf_blocks.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/not_finite.h"
#include "multihead/base/stored_matrix.h"

namespace mh {
namespace {

constexpr std::array kTypesRead = {
    GgufTypeFacts{GgufType::kF32, "F32", 1, 4},     GgufTypeFacts{GgufType::kF16, "F16", 1, 2},
    GgufTypeFacts{GgufType::kBF16, "BF16", 1, 2},   GgufTypeFacts{GgufType::kQ8_0, "Q8_0", 32, 34},
    GgufTypeFacts{GgufType::kQ4_0, "Q4_0", 32, 18}, GgufTypeFacts{GgufType::kQ4_1, "Q4_1", 32, 20}};

/// The names of the others, for messages (ggml.h, enum ggml_type).
constexpr std::array<std::pair<uint32_t, const char*>, 28> kOtherTypes = {
    {{6, "Q5_0"},   {7, "Q5_1"},    {9, "Q8_1"},   {10, "Q2_K"},    {11, "Q3_K"},   {12, "Q4_K"},
     {13, "Q5_K"},  {14, "Q6_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
     {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},
     {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},
     {35, "TQ2_0"}, {39, "MXFP4"},  {40, "NVFP4"}, {41, "Q1_0"}}};

float half_at(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return from_float16(bits);
}

constexpr int64_t kBlock = 32, kHalf = kBlock / 2;

/// scale and least: x_i = q_i * scale + least.
void read_nibbles(const std::byte* at, float scale, float least, float* out) {
  for (int64_t j = 0; j < kHalf; ++j) {
    const auto both = std::to_integer<uint32_t>(at[j]);
    out[j] = static_cast<float>(both & 15u) * scale + least;
    out[j + kHalf] = static_cast<float>(both >> 4) * scale + least;
  }
}

void read_block(GgufType type, const std::byte* at, float* out) {
  switch (type) {
    case GgufType::kF32:
      std::memcpy(out, at, sizeof *out);
      return;
    case GgufType::kF16:
      *out = half_at(at);
      return;
    case GgufType::kBF16: {
      uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      *out = from_bfloat16(bits);
      return;
    }
    case GgufType::kQ8_0: {
      const float scale = half_at(at);
      for (int64_t i = 0; i < kBlock; ++i)
        out[i] = static_cast<float>(std::to_integer<int8_t>(at[2 + i])) * scale;
      return;
    }
    case GgufType::kQ4_0: {
      const float scale = half_at(at);
      return read_nibbles(at + 2, scale, -8 * scale, out);
    }
    case GgufType::kQ4_1:
      return read_nibbles(at + 4, half_at(at), half_at(at + 2), out);
  }
}

}  // namespace

std::optional<GgufTypeFacts> gguf_type_facts(uint32_t type) {
  for (const GgufTypeFacts& facts : kTypesRead) {
    if (static_cast<uint32_t>(facts.type) == type) return facts;
  }
  return std::nullopt;
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
  for (const GgufTypeFacts& facts : kTypesRead)
    names += (names.empty() ? "" : ", ") + std::string(facts.name);
  return names;
}

void read_gguf_blocks(GgufType type, std::span<const std::byte> bytes, std::span<float> out) {
  const GgufTypeFacts facts = *gguf_type_facts(static_cast<uint32_t>(type));
  const auto blocks = static_cast<int64_t>(out.size()) / facts.block;
  MH_ASSERT(blocks * facts.block == static_cast<int64_t>(out.size()) &&
            blocks * facts.bytes == static_cast<int64_t>(bytes.size()));
  for (int64_t b = 0; b < blocks; ++b)
    read_block(type, bytes.data() + b * facts.bytes, out.data() + b * facts.block);
}

int64_t not_finite_in_gguf_blocks(GgufType type, std::span<const std::byte> bytes) {
  const GgufTypeFacts facts = *gguf_type_facts(static_cast<uint32_t>(type));
  const std::byte* const at = bytes.data();
  const auto blocks = static_cast<int64_t>(bytes.size()) / facts.bytes;
  switch (type) {
    case GgufType::kF32:
      return count_not_finite(at, blocks, kFloat32Exponent);
    case GgufType::kF16:
      return count_not_finite(at, blocks, kFloat16Exponent);
    case GgufType::kBF16:
      return count_not_finite(at, blocks, kBFloat16Exponent);
    case GgufType::kQ8_0:
    case GgufType::kQ4_0:
      return facts.block * count_not_finite(at, blocks, kFloat16Exponent, facts.bytes);
    case GgufType::kQ4_1:
      break;
  }
  int64_t bad = 0;
  for (int64_t b = 0; b < blocks; ++b)
    bad += count_not_finite(at + b * facts.bytes, 2, kFloat16Exponent) > 0 ? facts.block : 0;
  return bad;
}

}  // namespace mh
