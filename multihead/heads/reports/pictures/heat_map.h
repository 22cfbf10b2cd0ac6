// Draws a matrix of weights for the terminal: one line for each query, one column for each key.
#pragma once

#include <span>
#include <string>

#include "multihead/base/matrix_view.h"

namespace mh {

struct HeatMapOptions {
  enum class Cells {
    kShades,   // ░▒▓█, for files and pipes
    kColours,  // ANSI's 256 colours, for a terminal
    kNumbers,  // per cent
  };
  Cells cells = Cells::kShades;
  int columns = 80;  // widest line; a map that does not fit is cut into parts, one below the other
};

/// Draws a map. Row labels are at the left. Column labels are above, horizontal where there is room, else
/// vertical. Long labels are shortened with an ellipsis. Every line ends with "\n". Weights must be between 0
/// and 1. Throws UsageError when columns is less than 20, ShapeError when a row or column has no label.
std::string heat_map(ConstMatrixView weights, std::span<const std::string> row_labels,
                     std::span<const std::string> column_labels, const HeatMapOptions& options = {});

/// Returns one line that explains the shades or colours.
std::string heat_map_legend(HeatMapOptions::Cells cells);

}  // namespace mh
