// A table of figures on a terminal of 80 columns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mh::cli {

/// Rows and columns of figures, cut into parts that fit.
struct FigureTable {
  std::string corner = {};
  std::vector<std::string> rows = {}, columns = {};
  std::vector<std::vector<std::optional<double>>> cells = {};  // [rows][columns]; none: "-"

  /// figure: of at most width - 1 characters.
  std::string text(const std::function<std::string(double)>& figure, int width = 6) const;
};

}  // namespace mh::cli
