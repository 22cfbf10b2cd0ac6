// A matrix of weights as a picture for the terminal: queries down, keys across.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "multihead/base/matrix_view.h"

namespace mh {

struct HeatMapOptions {
  enum class Cells {
    kShades,   // ░▒▓█, for files and pipes
    kColours,  // ANSI's 256 colours, for a terminal
    kNumbers,  // per cent
  };
  Cells cells = Cells::kShades;
  int columns = 80;  // no line is wider; a map that does not fit is cut into parts below each other
};

/// Row labels stand at the left, column labels above: level where there is room, else written downwards; long
/// labels are shortened with an ellipsis. Every line ends with "\n". weights are between 0 and 1. Throws
/// UsageError when columns is less than 20, ShapeError when there is not a label for each row and column.
std::string heat_map(ConstMatrixView weights, std::span<const std::string> row_labels,
                     std::span<const std::string> column_labels, const HeatMapOptions& options = {});

/// The scale of shades or colours, in one line.
std::string heat_map_legend(HeatMapOptions::Cells cells);

/// Text for one cell: control characters as dots, cut to `width` columns of a terminal with an ellipsis.
std::string cell_text(std::string_view text, int width);

/// Columns that a terminal needs for UTF-8 text: 2 for the wide characters of East Asia, 0 for combining
/// marks.
int display_width(std::string_view text);

}  // namespace mh
