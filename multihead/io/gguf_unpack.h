// The blocks of GGUF's quantised types, one function each. Source: ggml's ggml-common.h (layout) and ggml-quants.c (formulas).
// d and m are float16, q are small integers; a product of these is exact in float32, so that only the sum with m rounds.
//
//   type     bytes   block                                                          numbers
//   Q4_0     18      d, 4 bits a q                                                  (q - 8) d
//   Q4_1     20      d, m, 4 bits a q                                               q d + m
//   Q5_0     22      d, 4 bytes of fifth bits, 4 bits a q                           (q - 16) d
//   Q5_1     24      d, m, 4 bytes of fifth bits, 4 bits a q                        q d + m
//   Q8_0     34      d, int8 q[32]                                                  q d
//   IQ4_NL   18      d, 4 bits a q                                                  table[q] d
//   MXFP4    17      e, 4 bits a q                                                  table[q] 2^(e - 128)
//
// are blocks of 32: of 4-bit numbers, byte j holds q_j in its lower half and q_(j+16) in its upper one; of the fifth bits, bit
// j is that of q_j. These are blocks of 256, in which each part has a scale s (and a least m) of a few bits:
//
//   Q2_K     84      16 bytes of s and m, 2 bits a q, d, dmin                       q d s - dmin m, parts of 16
//   Q3_K     110     32 bytes of third bits, 2 bits a q, 12 bytes of s, d           (q - 4) d (s - 32), parts of 16
//   Q4_K     144     d, dmin, 12 bytes of s and m, 4 bits a q                       q d s - dmin m, parts of 32
//   Q5_K     176     d, dmin, 12 bytes of s and m, 32 of fifth bits, 4 bits a q     likewise
//   Q6_K     210     4 bits a q, 64 bytes of two more, int8 s[16], d                (q - 32) d s, parts of 16
//   IQ4_XS   136     d, 2 and 4 bytes of s, 4 bits a q                              table[q] d (s - 32), parts of 32
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "multihead/base/block_matrix.h"
#include "multihead/base/stored_matrix.h"

namespace mh {

inline float float16_at(const std::byte* at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return from_float16(bits);
}

/// out[i] = number i of the block at `at`.
void unpack_block(BlockType type, const std::byte* at, float* out);

}  // namespace mh
