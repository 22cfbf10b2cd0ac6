// Panels of a PackedMatrix whose numbers take 16 bits, as a file has them: bfloat16 or float16 in place of float32.
//
// A panel of P columns [K, P] is for bfloat16
//
//   pairs[ceil(K / 2)][P]   lanes of 32 bits: number k = 2 t in the lower half of lane t, k = 2 t + 1 in the upper one
//
// so that a shift or a mask makes float32 numbers of neighbouring columns, and a sum of products of pairs of bfloat16 reads the
// lanes as they are; and for float16, which is converted a vector at a time,
//
//   numbers[2 ceil(K / 2)][P]
//
// Numbers of k beyond K are 0.
//
// A product makes float32 numbers of them in registers, again for each six rows: the half of the bytes to read is worth more
// than the conversions. These are exact, and sums run over k as in a float32 panel, so the product has the bits of one with the
// matrix as float32.
//
// The contract near (docs/precision.md) rounds rows of A to bfloat16, too, and leaves the sums to the processor:
//
//   y_j = sum_t (a_2t b_2t,j + a_2t+1 b_2t+1,j)     products exactly, in float32 one t after the other
//
// How the two products of a t are added (rounded once or twice, numbers below 2^-126 taken as 0) is the processor's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "multihead/base/matrix_view.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/kernels/half_rows.h"

namespace mh {

/// Bytes of a panel of so many columns, of either type.
int64_t half_panel_bytes(int64_t depth, int64_t columns);

/// Writes columns [first, first + width) of b [K, N] as a panel of so many columns; the others are 0. type: of the panel's numbers,
/// b's own, or bfloat16, to which others are rounded.
void pack_half_panel(const StoredMatrix& b, NumberType type, int64_t first, int64_t width, int64_t columns,
                     std::byte* to);

/// C (+)= A b, A [m, depth], C [m, width], for numbers [k0, k0 + depth) of the panel b, which has as many columns as
/// PackedMatrix::panel() says. REQUIRES: type is of 16 bits.
void multiply_half_panel(ConstMatrixView a, NumberType type, const std::byte* b, int64_t k0, MatrixView c,
                         bool add);

/// Writes rows [begin, end) of the panel b as float32, one so many numbers after the other.
void unpack_half_panel(NumberType type, const std::byte* b, int64_t begin, int64_t end, float* to,
                       int64_t stride);

/// C (+)= A b, A [rows, depth], C [rows, width], for a whole panel b of bfloat16. A row's sums do not depend on others.
/// REQUIRES: the machine has ProductKernel::kBFloat16Dots (kernels/product_kernels.h).
void multiply_half_rows(const HalfRows& rows, const std::byte* panel, MatrixView c, bool add);

}  // namespace mh
