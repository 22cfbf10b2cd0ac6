// Products of bytes with one scale for each row of X and one for each column of W, for weights that are float32 or bfloat16 in a
// file (the contract fast of docs/precision.md): with R and a_ik, s_i of kernels/channel_rows.h
//
//   R W ~ 128 t_j w_j,   w_kj = round((R W)_kj / (128 t_j)), halves to the even one,   128 t_j = max_k |(R W)_kj| / 127
//   y_ij = (s_i t_j) n_ij,   n_ij = sum_k a_ik w_kj
//
// The sum n_ij is exact; y_ij is the float32 nearest to n_ij, times s_i t_j rounded, rounded. So y has the same bits on every
// processor, and beside whatever other rows and columns. A column of which a number of R W is not finite is NaN.
//
// A panel of P columns is
//
//   u[ceil(K / 4)][P][4]   uint8: w_kj + 128, four neighbouring k of a column together; 128 beyond the matrix
//   t[P]                   float32: t_j; 0 beyond the matrix
//
// unsigned because products of bytes are those of an unsigned and a signed one: n_ij = sum_k a_ik u_kj - 128 sum_k a_ik.
#pragma once

#include <cstddef>
#include <cstdint>

#include "multihead/base/matrix_view.h"
#include "multihead/base/precision.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/kernels/channel_rows.h"

namespace mh {

/// Bytes of a panel of so many columns.
int64_t channel_panel_bytes(int64_t depth, int64_t columns);

/// Writes columns [first, first + width) of W [K, N] as those of a panel of so many columns. REQUIRES: these are as many as
/// PackedMatrix::panel() says; K <= kMostChannelDepth.
void pack_channel_panel(const StoredMatrix& w, int64_t first, int64_t width, int64_t columns, std::byte* to);

/// C (+)= Y, C [rows, width], for a panel of the same K. kernel: one of integers that this machine has.
void multiply_channel_panel(const ChannelRows& rows, const std::byte* panel, ProductKernel kernel,
                            MatrixView c, bool add);

}  // namespace mh
