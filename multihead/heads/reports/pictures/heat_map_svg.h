// Attention weights as pictures in SVG: queries down, keys across, the darker the larger. Blue alone on
// white, so that nobody needs to tell colours apart; a scale says which weight is which blue.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/matrix_view.h"

namespace mh {

struct HeatMapCell {
  int64_t query = 0, key = 0;
};

/// One head on one sentence, with its tokens.
struct HeatMapPanel {
  std::string title;                     // "encoder.0.self_attention.1"
  std::string caption;                   // "each source token attends to source tokens"
  ConstMatrixView weights;               // [queries, keys], from 0 to 1
  std::span<const std::string> queries;  // a label for each row
  std::span<const std::string> keys;     // a label for each column
  /// A colour for each row in turn, "#0072B2", the stronger the larger the weight; empty: all are blue.
  std::span<const char* const> row_colours = {};
  /// Cells that get a frame. REQUIRES: they are cells of the weights.
  std::span<const HeatMapCell> framed = {};
};

/// The heads beside and below each other, as wide as a column of text, with labels; a cell shows its tokens and weight
/// under the mouse.
/// Throws ShapeError when there is not a label for each row and column, UsageError when there is no panel.
std::string heat_maps_as_svg(std::span<const HeatMapPanel> panels);

/// All heads of one attention.
struct HeadGridRow {
  std::string title;                   // "encoder.0.self_attention"
  std::vector<ConstMatrixView> heads;  // [queries, keys] of each
};

/// A small picture of each head, an attention a row, without labels. Throws UsageError when there is no row.
std::string head_grid_as_svg(std::string_view title, std::span<const HeadGridRow> rows);

}  // namespace mh
