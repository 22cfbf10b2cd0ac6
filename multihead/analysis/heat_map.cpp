#include "multihead/analysis/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "multihead/base/error.h"

namespace mh {
namespace {

constexpr int kLongestRowLabel = 14;
constexpr int kTallestColumnLabel = 10;  // lines of labels that are written downwards
constexpr int kWidestCell = 9;
constexpr int kNarrowestLevelCell = 6;  // below it level labels say too little
constexpr const char* kEllipsis = "\u2026";

// The darkest shade or colour stands for less than the first bound.
constexpr std::array kShades{" ", "\u2591", "\u2592", "\u2593", "\u2588"};
constexpr std::array kShadeBounds{0.05, 0.2, 0.4, 0.7};
// From the 6 x 6 x 6 cube: black, violet, red, orange, yellow, white; lightness rises throughout.
constexpr std::array kColours{16, 17, 53, 54, 90, 126, 161, 203, 208, 214, 220, 228, 231};

struct Character {
  std::string_view bytes;
  int width;
};

int width_of(uint32_t code) {
  if (code == 0 || (code >= 0x300 && code <= 0x36F) || (code >= 0x200B && code <= 0x200F) || code == 0xFE0F)
    return 0;
  const bool wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
                    (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
                    (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                    (code >= 0x1F300 && code <= 0x1FAFF) || (code >= 0x20000 && code <= 0x3FFFD);
  return wide ? 2 : 1;
}

/// Views of `text`.
std::vector<Character> characters(std::string_view text) {
  std::vector<Character> all;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    size = std::min(size, text.size() - at);
    uint32_t code = size == 1 ? first : first & (0xFFu >> (size + 1));
    for (size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
    all.push_back({text.substr(at, size), width_of(code)});
    at += size;
  }
  return all;
}

/// What may not stand in a terminal's line is shown as a dot.
std::string printable(std::string_view label) {
  std::string text;
  for (const char c : label) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '.' : c;
  return text;
}

std::string shortened(const std::string& label, int width) {
  if (display_width(label) <= width) return label;
  std::string text;
  int used = 0;
  for (const Character& character : characters(label)) {
    if (used + character.width > width - 1) break;
    text += character.bytes;
    used += character.width;
  }
  return text + kEllipsis;
}

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
    for (const std::string& label : rows) rows_.push_back(shortened(printable(label), kLongestRowLabel));
    for (const std::string& label : columns) columns_.push_back(printable(label));
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
      const std::string label = shortened(columns_[static_cast<size_t>(j)], cell_ - 1);
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
      const std::string text = shortened(columns_[static_cast<size_t>(j)], kTallestColumnLabel);
      for (const Character& c : characters(text)) {
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

std::string cell_text(std::string_view text, int width) {
  return shortened(printable(text), width);
}

int display_width(std::string_view text) {
  int width = 0;
  for (const Character& character : characters(text)) width += character.width;
  return width;
}

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
