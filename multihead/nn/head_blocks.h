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

/// Rows and columns of a matrix.
struct Block {
  int64_t row_begin = 0, row_end = 0, col_begin = 0, col_end = 0;

  template <class T>
  BasicMatrixView<T> of(BasicMatrixView<T> matrix) const {
    return matrix.rows_between(row_begin, row_end).columns_between(col_begin, col_end);
  }
  bool operator==(const Block&) const = default;
};

/// A parameter "w_q", "b_o", ..., as MultiHeadAttention::visit calls it behind the layer's name.
struct NamedShape {
  std::string_view name;
  int64_t rows = 0, cols = 0;
};

/// The numbers of a parameter that query head `head` uses and not all heads do; heads of one group have the
/// same block of the keys' and values' parameters. Empty when all heads use all of it. geometry: completed().
std::optional<Block> head_block(const HeadGeometry& geometry, int d_model, const NamedShape& parameter,
                                int head);

/// Of a parameter that stands in the table, with how many heads lie side by side in its columns: those of
/// query head `head` of `heads`. Empty when one head is all heads', or it stands not there.
std::optional<Block> columns_of_head(const NamedShape& parameter, int head, int heads,
                                     std::initializer_list<std::pair<std::string_view, int>> side_by_side);

}  // namespace mh
