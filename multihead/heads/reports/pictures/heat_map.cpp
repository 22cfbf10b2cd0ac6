#include "multihead/heads/reports/pictures/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"

namespace mh {
namespace {

constexpr int kLongestRowLabel = 14;
constexpr int kTallestColumnLabel = 10;  // lines of labels that are written downwards
constexpr int kWidestCell = 9;
constexpr int kNarrowestLevelCell = 6;  // below it level labels say too little

// The darkest shade or colour stands for less than the first bound.
constexpr std::array kShades{" ", "\u2591", "\u2592", "\u2593", "\u2588"};
constexpr std::array kShadeBounds{0.05, 0.2, 0.4, 0.7};
// From the 6 x 6 x 6 cube: black, violet, red, orange, yellow, white; lightness rises throughout.
constexpr std::array kColours{16, 17, 53, 54, 90, 126, 161, 203, 208, 214, 220, 228, 231};

std::string spaces(int count) {
  return std::string(static_cast<size_t>(std::max(count, 0)), ' ');
}

size_t shade_of(double weight) {
  size_t shade = 0;
  while (shade < kShadeBounds.size() && weight >= kShadeBounds[shade]) ++shade;
  return shade;
}

int colour_of(double weight) {
  const double scaled = std::clamp(weight, 0.0, 1.0) * (kColours.size() - 1);
  return kColours[static_cast<size_t>(std::lround(scaled))];
}

class Picture {
 public:
  Picture(ConstMatrixView weights, std::span<const std::string> rows, std::span<const std::string> columns,
          const HeatMapOptions& options)
      : weights_(weights), options_(options) {
    for (const std::string& label : rows) rows_.push_back(cell_text(label, kLongestRowLabel));
    for (const std::string& label : columns)
      columns_.push_back(cell_text(label, std::numeric_limits<int>::max()));
    for (const std::string& label : rows_) margin_ = std::max(margin_, display_width(label));
    ++margin_;
    int longest = 1;
    for (const std::string& label : columns_) longest = std::max(longest, display_width(label));
    const int room = options.columns - margin_, count = std::max(static_cast<int>(columns_.size()), 1);
    const int narrowest = options.cells == HeatMapOptions::Cells::kNumbers ? 4 : 2;
    const int wanted = std::clamp(longest + 1, std::max(narrowest, 3), kWidestCell);
    cell_ = std::min(wanted, room / count);
    level_ = cell_ == wanted || cell_ >= kNarrowestLevelCell;
    if (!level_) cell_ = narrowest;
    in_part_ = std::min(count, std::max(room / cell_, 1));
  }

  std::string draw() const {
    std::string text;
    for (int begin = 0; begin < static_cast<int>(columns_.size()); begin += in_part_) {
      const int end = std::min(begin + in_part_, static_cast<int>(columns_.size()));
      if (begin > 0) text += '\n';
      text += level_ ? level_header(begin, end) : downward_header(begin, end);
      for (size_t i = 0; i < rows_.size(); ++i) {
        std::string line = rows_[i] + spaces(margin_ - display_width(rows_[i]));
        for (int j = begin; j < end; ++j) line += cell(weights_(static_cast<int64_t>(i), j));
        add_line(text, line);
      }
    }
    return text;
  }

 private:
  // Without the spaces at its end.
  static void add_line(std::string& text, const std::string& line) {
    text.append(line, 0, line.find_last_not_of(' ') + 1);
    text += '\n';
  }

  std::string level_header(int begin, int end) const {
    std::string text, line = spaces(margin_);
    for (int j = begin; j < end; ++j) {
      const std::string label = cell_text(columns_[static_cast<size_t>(j)], cell_ - 1);
      line += label + spaces(cell_ - display_width(label));
    }
    add_line(text, line);
    return text;
  }

  std::string downward_header(int begin, int end) const {
    std::vector<std::vector<std::string>> labels;
    size_t tallest = 0;
    for (int j = begin; j < end; ++j) {
      auto& label = labels.emplace_back();
      const std::string text = cell_text(columns_[static_cast<size_t>(j)], kTallestColumnLabel);
      for (const TerminalCharacter& c : terminal_characters(text)) {
        if (c.width == 0 && !label.empty()) {
          label.back() += c.bytes;
        } else {
          label.push_back(std::string(c.bytes));
        }
      }
      tallest = std::max(tallest, label.size());
    }
    std::string text;
    for (size_t at = 0; at < tallest; ++at) {
      std::string line = spaces(margin_);
      for (const auto& label : labels) {  // ends stand on the first row
        const size_t above = tallest - label.size();
        const std::string c = at < above ? " " : label[at - above];
        line += c + spaces(cell_ - display_width(c));
      }
      add_line(text, line);
    }
    return text;
  }

  std::string cell(double weight) const {
    switch (options_.cells) {
      case HeatMapOptions::Cells::kNumbers: {
        const std::string number = fmt::format("{:.0f}", 100 * weight);
        const std::string shown = number == "0" ? "\u00b7" : number;
        return spaces(std::min(cell_, 4) - 1 - display_width(shown)) + shown +
               spaces(cell_ - std::min(cell_, 4) + 1);
      }
      case HeatMapOptions::Cells::kColours:
        return fmt::format("\x1b[48;5;{}m{}\x1b[0m", colour_of(weight), spaces(cell_));
      case HeatMapOptions::Cells::kShades:
        break;
    }
    std::string shade;
    for (int i = 0; i < cell_; ++i) shade += kShades[shade_of(weight)];
    return shade;
  }

  ConstMatrixView weights_;
  const HeatMapOptions& options_;
  std::vector<std::string> rows_, columns_;
  int margin_ = 0;     // columns before the first cell
  int cell_ = 2;       // columns of a cell
  bool level_ = true;  // column labels are written across
  int in_part_ = 1;    // keys beside each other
};

}  // namespace

std::string heat_map(ConstMatrixView weights, std::span<const std::string> row_labels,
                     std::span<const std::string> column_labels, const HeatMapOptions& options) {
  if (static_cast<int64_t>(row_labels.size()) != weights.rows ||
      static_cast<int64_t>(column_labels.size()) != weights.cols) {
    throw ShapeError(fmt::format("heat map: {} row labels and {} column labels for [{}, {}] weights",
                                 row_labels.size(), column_labels.size(), weights.rows, weights.cols));
  }
  if (options.columns < 20) {
    throw UsageError(fmt::format("heat map: expected at least 20 columns, got {}", options.columns));
  }
  return Picture(weights, row_labels, column_labels, options).draw();
}

std::string heat_map_legend(HeatMapOptions::Cells cells) {
  if (cells == HeatMapOptions::Cells::kNumbers) return "per cent of the row; \u00b7 less than one\n";
  std::string text = "weight";
  if (cells == HeatMapOptions::Cells::kColours) {
    text += " 0 ";
    for (const int colour : kColours) text += fmt::format("\x1b[48;5;{}m  \x1b[0m", colour);
    return text + " 1\n";
  }
  for (size_t i = 1; i < kShades.size(); ++i)
    text += fmt::format("  {} from {:.0f} %", kShades[i], 100 * kShadeBounds[i - 1]);
  return text + "\n";
}

}  // namespace mh
