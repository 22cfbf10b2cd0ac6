// Makes blocks of numbers, for files in the types that llama.cpp reads: what io/gguf_unpack.h undoes. Rounds as ggml's reference
// does (ggml-quants.c, quantize_row_q8_0_ref and quantize_row_q4_0_ref), with the bits of the `gguf` package. Of a block x:
//
//   Q8_0   d = max |x| / 127, q = x / d rounded to the nearest integer
//   Q4_0   d = (the x of largest magnitude) / -8, so that this one becomes q = 0; q = x / d + 8 rounded, at most 15
//
// The file has d rounded to float16; q is found with d as it was before.
#pragma once

#include <cstddef>
#include <span>

#include "multihead/base/block_matrix.h"

namespace mh {

/// The types that quantise_blocks() makes.
constexpr bool can_quantise(BlockType type) {
  return type == BlockType::kQ8_0 || type == BlockType::kQ4_0;
}

/// Writes the numbers as blocks to `to`. Returns whether they are finite there: with a number that is not, or a d beyond float16,
/// they are not. REQUIRES: can_quantise(type); whole blocks, and `to` has their bytes.
bool quantise_blocks(BlockType type, std::span<const float> numbers, std::span<std::byte> to);

}  // namespace mh
