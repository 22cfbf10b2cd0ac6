// Looks up rows of an embedding table, and fills the table of sinusoidal positions.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/base/matrix_view.h"
#include "multihead/base/stored_matrix.h"

namespace mh {

/// to row i = scale * table row ids[i] + positions row positions_of[i], ids in [0, table.rows); nothing is added where
/// `positions` is empty. The table is read where it is stored. On the calling thread.
void embed(const StoredMatrix& table, std::span<const int32_t> ids, float scale, ConstMatrixView positions,
           std::span<const int32_t> positions_of, MatrixView to);

/// d_table row ids[i] += scale * d_output row i, in order of i; in parallel over columns.
void embed_gradient(std::span<const int32_t> ids, float scale, ConstMatrixView d_output, MatrixView d_table);

/// Marian's form of the paper's sinusoids (section 3.5): row p = sin(p w_0), sin(p w_1), ..., cos(p w_0), ...
/// with w_i = 10000^(-2i / cols); the sines and cosines are two halves, not interleaved as in the paper. An
/// odd width has one sine more than cosines.
void sinusoids(MatrixView positions);

/// Fairseq's form (M2M-100): the same halves of floor(cols / 2) numbers each with w_i = 10000^(-i / (floor(cols / 2) - 1)), so that
/// the last w is 1/10000. An odd width ends with a zero. REQUIRES: cols >= 4.
void fairseq_sinusoids(MatrixView positions);

}  // namespace mh
