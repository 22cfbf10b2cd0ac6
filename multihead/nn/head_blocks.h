// Which part of a layer's parameters belongs to which head.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "multihead/base/matrix_view.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

/// A block of a matrix: rows [row_begin, row_end) and columns [col_begin, col_end).
struct Block {
  int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;

  template <class T>
  BasicMatrixView<T> of(BasicMatrixView<T> matrix) const {
    return matrix.rows_between(row_begin, row_end).columns_between(col_begin, col_end);
  }
  bool operator==(const Block&) const = default;
};

/// The name and shape of a parameter: "w_q", "b_o", ..., as in MultiHeadAttention::visit, without the
/// layer's name.
struct NamedShape {
  std::string_view name;
  int64_t rows = 0, cols = 0;
};

/// The block of a parameter that query head `head` uses. Heads of one group share a block of the parameters
/// of keys and values. Empty when all heads use the whole parameter. geometry: completed().
std::optional<Block> head_block(const HeadGeometry& geometry, int d_model, const NamedShape& parameter,
                                int head);

/// The columns of query head `head` of `heads` in a parameter whose heads lie side by side. The table says
/// for each parameter name how many heads that are, e.g. {"w_k", key_heads}. Empty when that is 1 and there
/// are several heads, or when the parameter is not in the table.
std::optional<Block> columns_of_head(const NamedShape& parameter, int head, int heads,
                                     std::initializer_list<std::pair<std::string_view, int>> side_by_side);

}  // namespace mh
