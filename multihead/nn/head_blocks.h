// Which part of a layer's parameters belongs to which head.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "multihead/base/matrix_view.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

/// Rows and columns of a matrix.
struct Block {
  int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;

  template <class T>
  BasicMatrixView<T> of(BasicMatrixView<T> matrix) const {
    return matrix.rows_between(row_begin, row_end).columns_between(col_begin, col_end);
  }
  bool operator==(const Block&) const = default;
};

/// The numbers of parameter `name` ("w_q", "b_o", ..., as MultiHeadAttention::visit calls it behind the
/// layer's name), of shape [rows, cols], that query head `head` uses and not all heads do; heads of one group
/// have the same block of the keys' and values' parameters. Empty when all heads use all of it. geometry:
/// completed().
std::optional<Block> head_block(const HeadGeometry& geometry, int d_model, std::string_view name,
                                int64_t rows, int64_t cols, int head);

/// The columns that each head reads of a row of d_model numbers.
HeadColumns columns_read(const HeadGeometry& geometry, int d_model);

}  // namespace mh
