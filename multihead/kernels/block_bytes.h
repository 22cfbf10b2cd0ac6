// Products of rows of integers (kernels/byte_rows.h) with panels of blocks (kernels/block_panels.h): the contracts near and fast
// of docs/precision.md. With column j of the panel, and the numbers k of part p of its blocks,
//
//   dot_p = sum_k a_k (q_kj - offset)                     exactly
//   y_j   = sum_p scale_p (d s dot_p + m t sum_k a_k)     in float32, one part after the other
//
// scale_p is the row's; d, s, m, t, q and offset are those of base/block_matrix.h, q being v(q) for a type with values. Of a wide
// group dot_p is 256 times the sum with the high bytes and that with the low ones. For each part
//
//   r = dot_p (d s)    or, with an m,  fma(dot_p, d s, (sum_k a_k) (m t))
//   y = fma(scale_p, r, y)
//
// where every product and fma rounds once, so that y has the same bits on every processor, and beside whatever other rows.
#pragma once

#include <cstddef>

#include "multihead/base/block_matrix.h"
#include "multihead/base/matrix_view.h"
#include "multihead/base/precision.h"
#include "multihead/kernels/byte_rows.h"

namespace mh {

/// C (+)= A b, A [rows, depth], C [rows, width], for the panel b, which has as many columns as PackedMatrix::panel() says.
/// kernel: one of integers that this machine has.
void multiply_block_bytes(const ByteRows& a, BlockType type, const std::byte* b, ProductKernel kernel,
                          MatrixView c, bool add);

}  // namespace mh
