// The types of GGUF's numbers. Quantised types store a row as blocks of 32 or 256 numbers, each with scales of its own.
// gguf_unpack.h has the layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "multihead/base/block_matrix.h"

namespace mh {

/// The types that are read, with their numbers in the file.
enum class GgufType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

struct GgufTypeFacts {
  GgufType type;
  const char* name;
  int64_t block;  // numbers
  int64_t bytes;  // of a block
  /// The type of blocks that products read as they are (base/block_matrix.h).
  std::optional<BlockType> blocks = std::nullopt;
};

/// Returns nothing for a type that is not read.
std::optional<GgufTypeFacts> gguf_type_facts(uint32_t type);
/// Returns "IQ2_XS", or "type 77" when the number is not known, for messages.
std::string gguf_type_name(uint32_t type);
/// "F32, F16, BF16, ...".
std::string gguf_types_read();

/// out[i] = number i of the blocks. REQUIRES: out.size() is a multiple of the block, and bytes has exactly as
/// many blocks.
void read_gguf_blocks(GgufType type, std::span<const std::byte> bytes, std::span<float> out);

/// Returns how many of the numbers are infinite or NaN, without memory for them: of a block with a float16 d (and m) all
/// are when d or m is, and otherwise none. REQUIRES: bytes has whole blocks.
int64_t not_finite_in_gguf_blocks(GgufType type, std::span<const std::byte> bytes);

}  // namespace mh
