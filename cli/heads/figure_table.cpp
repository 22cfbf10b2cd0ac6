#include "cli/heads/figure_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

constexpr int kTableColumns = 80;

std::string filled_up(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

}  // namespace

std::string FigureTable::text(const std::function<std::string(double)>& figure, int width) const {
  int first = display_width(corner);
  for (const std::string& row : rows) first = std::max(first, display_width(row));
  const auto at_once = static_cast<size_t>(std::max(1, (kTableColumns - first) / width));
  std::string all;
  for (size_t begin = 0; begin < columns.size(); begin += at_once) {
    const size_t end = std::min(columns.size(), begin + at_once);
    all += filled_up(corner, first);
    for (size_t c = begin; c < end; ++c) all += fmt::format("{:>{}}", columns[c], width);
    all += "\n";
    for (size_t r = 0; r < rows.size(); ++r) {
      all += filled_up(rows[r], first);
      for (size_t c = begin; c < end; ++c) {
        const std::optional<double>& cell = cells[r][c];
        all += fmt::format("{:>{}}", cell ? figure(*cell) : "-", width);
      }
      all += "\n";
    }
  }
  return all;
}

}  // namespace mh::cli
