#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "lab/studies/report.h"
#include "lab/studies/statistics.h"
#include "multihead/analysis/heat_map.h"

namespace mh {
namespace {

size_t width_of(std::string_view text) {
  return static_cast<size_t>(display_width(text));
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kUndecided:
      return "UNDECIDED";
    case Verdict::kMeasured:
      return "MEASURED";
    case Verdict::kWithdrawn:
      break;
  }
  return "WITHDRAWN";
}

std::string_view original_statement_name(OriginalStatement statement) {
  switch (statement) {
    case OriginalStatement::kRight:
      return "right";
    case OriginalStatement::kHalfRight:
      return "half right";
    case OriginalStatement::kWrong:
      return "wrong";
    case OriginalStatement::kNotMade:
      break;
  }
  return "not made";
}

std::string about_the_original(const Claim& claim) {
  if (claim.original_statement == OriginalStatement::kNotMade)
    return "The original does not state this. It says: " + claim.original_words;
  return fmt::format("The original statement is {}: {}", original_statement_name(claim.original_statement),
                     claim.original_words);
}

int StudyReport::count(Verdict verdict) const {
  return static_cast<int>(std::count_if(claims.begin(), claims.end(),
                                        [&](const Claim& claim) { return claim.verdict == verdict; }));
}

std::string wrapped(const std::string& text, const std::string& indent, size_t width,
                    const std::string& further) {
  std::string out, line = indent;
  bool empty = true;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(" \n", at);
    if (begin == std::string::npos) break;
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!empty && width_of(line) + 1 + width_of(word) > width) {
      out += line + "\n";
      line = indent + further;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    at = end;
  }
  return out + line + "\n";
}

namespace {

std::string padded(const std::string& text, size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return left ? text + space : space + text;
}

std::vector<std::string> lines_of(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  const std::string all = wrapped(text, "", width);
  for (size_t at = 0; at < all.size(); at = all.find('\n', at) + 1)
    lines.push_back(all.substr(at, all.find('\n', at) - at));
  return lines;
}

size_t longest_word(const std::string& text) {
  size_t longest = 0;
  for (const std::string& word : lines_of(text, 1)) longest = std::max(longest, width_of(word));
  return longest;
}

/// The least that a column can be broken to: its longest word. One of figures alone is not broken.
size_t least_width(const Table& table, size_t column, size_t width) {
  size_t least = longest_word(table.columns[column]);
  bool words = false;
  for (const auto& row : table.rows) {
    if (column >= row.size()) continue;
    least = std::max(least, longest_word(row[column]));
    words = words || std::any_of(row[column].begin(), row[column].end(),
                                 [](unsigned char c) { return std::isalpha(c); });
  }
  return words ? least : width;
}

/// As wide as their cells. Where that is too much for a line, headings are broken, and then cells, those of
/// the widest column first.
std::vector<size_t> column_widths(const Table& table, size_t room) {
  std::vector<size_t> cells(table.columns.size(), 0), widths;
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) cells[c] = std::max(cells[c], width_of(row[c]));
  }
  const size_t between = 2 * (cells.size() - 1);
  const auto all = [&] { return std::accumulate(widths.begin(), widths.end(), between); };
  for (size_t c = 0; c < cells.size(); ++c) widths.push_back(std::max(cells[c], width_of(table.columns[c])));
  if (all() <= room) return widths;
  for (size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(cells[c], longest_word(table.columns[c]));
  std::vector<size_t> by_width(cells.size());
  std::iota(by_width.begin(), by_width.end(), 0);
  std::stable_sort(by_width.begin(), by_width.end(),
                   [&](size_t a, size_t b) { return widths[a] > widths[b]; });
  for (const size_t c : by_width) {
    if (all() <= room) break;
    const size_t others = all() - widths[c];
    widths[c] = std::max(least_width(table, c, widths[c]), room - std::min(room, others));
  }
  return widths;
}

std::string table_for_terminal(const Table& table, const std::string& indent) {
  constexpr size_t kLine = 80;
  const std::string begin = indent + "  ";
  const std::vector<size_t> widths = column_widths(table, kLine - begin.size());
  std::string text = table.caption.empty() ? "" : wrapped(table.caption + ":", indent);
  // Headings stand at the bottom of their lines, cells at the top.
  const auto print = [&](const std::vector<std::string>& row, bool heading) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t c = 0; c < widths.size(); ++c) {
      cells.push_back(c < row.size() ? lines_of(row[c], widths[c]) : std::vector<std::string>());
      height = std::max(height, cells.back().size());
    }
    for (size_t line = 0; line < height; ++line) {
      std::string out = begin;
      for (size_t c = 0; c < cells.size(); ++c) {
        const size_t above = heading ? height - cells[c].size() : 0;
        const bool there = line >= above && line - above < cells[c].size();
        out += (c == 0 ? "" : "  ") + padded(there ? cells[c][line - above] : "", widths[c], c == 0);
      }
      text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
    }
  };
  print(table.columns, true);
  for (const auto& row : table.rows) print(row, false);
  return text;
}

/// What the bar of a series shows: the last point, or the mean.
double shown_number(const Plot& plot, const Series& series) {
  return plot.kind == PlotKind::kStrips ? interval_of(series.y).mean : series.y.back();
}

}  // namespace

std::string plot_for_terminal(const Plot& plot, const std::string& indent) {
  constexpr double kBar = 30;
  size_t name_width = 0;
  double most = 0;
  for (const Series& series : plot.series) {
    if (series.y.empty()) continue;
    name_width = std::max(name_width, width_of(series.name));
    most = std::max(most, std::abs(shown_number(plot, series)));
  }
  std::string text = wrapped(plot.title + " (" + plot.y_label + "):", indent);
  for (const Series& series : plot.series) {
    if (series.y.empty()) continue;
    const double share = most > 0 ? std::abs(shown_number(plot, series)) / most : 0;
    const auto eighths = static_cast<int>(std::lround(share * kBar * 8));
    std::string bar;
    for (int i = 0; i < eighths / 8; ++i) bar += "█";
    constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bar += kParts[eighths % 8];
    text += fmt::format("{}  {} {} {:.4g}\n", indent, padded(series.name, name_width, true), bar,
                        shown_number(plot, series));
  }
  return text;
}

std::string report_for_terminal(const StudyReport& report) {
  std::string text = wrapped(report.question) + "\n";
  for (const Claim& claim : report.claims) {
    if (claim.verdict == Verdict::kWithdrawn) {
      text += wrapped(fmt::format("{} Withdrawn: {}", claim.id, claim.withdrawn)) + "\n";
      continue;
    }
    text += wrapped(fmt::format("{}  {}", claim.id, claim.statement));
    for (const Table& table : claim.tables) text += table_for_terminal(table, "    ");
    for (const Plot& plot : claim.plots) text += plot_for_terminal(plot, "    ");
    text += wrapped("measured: " + claim.measured, "    ");
    if (!claim.original_words.empty()) text += wrapped(about_the_original(claim), "    ");
    text += wrapped(fmt::format("{}{}", verdict_name(claim.verdict),
                                claim.tolerance.empty() ? "" : " (asked: " + claim.tolerance + ")"),
                    "    ") +
            "\n";
  }
  return report.conclusion.empty() ? text : text + wrapped(report.conclusion);
}

}  // namespace mh
