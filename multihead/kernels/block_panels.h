// Panels of a PackedMatrix that stay the blocks of a file (base/block_matrix.h): 3 to 9 bits a number in place of 32.
//
// The blocks of a panel's columns lie interleaved, so that one vector load has numbers of neighbouring columns. A block of a
// panel of P columns is, one after the other,
//
//   d[P], m[P]                  float16; m where the type has it
//   s[parts][P], t[parts][P]    int8; where the block has parts, and t where there is an m
//   low[numbers * b / 32][P]    b bits of each number in lanes of 32 bits: number k = 4 t + i of a lane at bit 8 i + b t
//   high[numbers * b / 32][P]   the bits above them; where there are any
//
// so that a shift and a mask make of a lane the four bytes of four neighbouring k, as products of bytes read them
// (kernels/block_bytes.h), or one number.
//
// A product with one row makes float32 numbers of them in registers; one with more rows makes them once for all rows, in a
// window that stays in the cache. Each number has the bits of io/gguf_unpack.h, and sums run over k as in a float32 panel,
// so the product has the bits of one with the unpacked matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "multihead/base/block_matrix.h"
#include "multihead/base/matrix_view.h"

namespace mh {

/// Bytes of a panel of so many columns. REQUIRES: depth has whole blocks, here and below.
int64_t block_panel_bytes(BlockType type, int64_t depth, int64_t columns);

/// Writes rows [first, first + width) of `blocks` as the columns of a panel of so many columns; the others are 0.
void pack_block_panel(const BlockMatrix& blocks, int64_t first, int64_t width, int64_t columns,
                      std::byte* to);

/// C (+)= A b, A [m, depth], C [m, width], for numbers [k0, k0 + depth) of the panel b, which has as many columns as
/// PackedMatrix::panel() says.
void multiply_block_panel(ConstMatrixView a, BlockType type, const std::byte* b, int64_t k0, MatrixView c,
                          bool add);

/// Writes rows [begin, end) of the panel b as float32, one so many numbers after the other. REQUIRES: begin and end are
/// multiples of 8.
void unpack_block_panel(BlockType type, const std::byte* b, int64_t begin, int64_t end, float* to,
                        int64_t stride);

}  // namespace mh
