// The types of GGUF's numbers. Quantised types store a row as blocks of 32 numbers, each block with a scale
// (float16) of its own. Source: ggml's ggml-common.h (layout) and ggml-quants.c (formulas).
//
//   type   bytes   block                                     numbers, i = 0 ... 31
//   Q8_0   34      d, int8 q[32]                             x_i = q_i d
//   Q4_0   18      d, 16 bytes of two 4-bit numbers each     x_i = (q_i - 8) d
//   Q4_1   20      d, m, 16 bytes likewise                   x_i = q_i d + m
//
// Of 4-bit numbers, byte j holds q_j in its lower half and q_(j+16) in its upper one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mh {

/// The types that are read, with their numbers in the file.
enum class GgufType : uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ8_0 = 8, kBF16 = 30 };

struct GgufTypeFacts {
  GgufType type;
  const char* name;
  int64_t block;  // numbers
  int64_t bytes;  // of a block
};

/// Returns nothing for a type that is not read.
std::optional<GgufTypeFacts> gguf_type_facts(uint32_t type);
/// Returns "Q6_K", or "type 77" when the number is not known, for messages.
std::string gguf_type_name(uint32_t type);
/// "F32, F16, BF16, ...".
std::string gguf_types_read();

/// out[i] = number i of the blocks. REQUIRES: out.size() is a multiple of the block, and bytes has exactly as
/// many blocks.
void read_gguf_blocks(GgufType type, std::span<const std::byte> bytes, std::span<float> out);
/// How many of these numbers are infinite or not a number: those of blocks whose scales are. REQUIRES: bytes are
/// whole blocks.
int64_t count_not_finite(GgufType type, std::span<const std::byte> bytes);

}  // namespace mh
