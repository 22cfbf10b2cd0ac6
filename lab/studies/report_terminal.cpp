#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "lab/studies/plot_parts.h"
#include "lab/studies/report.h"
#include "lab/studies/statistics.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/pictures/heat_map.h"

namespace mh {
namespace {

size_t width_of(std::string_view text) {
  return static_cast<size_t>(display_width(text));
}

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

}  // namespace

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

namespace {

/// The number that a bar shows: the last point, or the mean.
double shown_number(const Plot& plot, const Series& series) {
  return plot.kind == PlotKind::kStrips ? interval_of(series.y).mean : series.y.back();
}

std::string bars(const Plot& plot, const std::string& indent) {
  constexpr double kBar = 30, kName = 30;
  size_t name_width = 0;
  double most = 0;
  for (const Series& series : plot.series) {
    if (series.y.empty()) continue;
    name_width = std::max(name_width, std::min<size_t>(kName, width_of(series.name)));
    most = std::max(most, std::abs(shown_number(plot, series)));
  }
  std::string text;
  for (const Series& series : plot.series) {
    if (series.y.empty()) continue;
    const double share = most > 0 ? std::abs(shown_number(plot, series)) / most : 0;
    const auto eighths = static_cast<int>(std::lround(share * kBar * 8));
    std::string bar;
    for (int i = 0; i < eighths / 8; ++i) bar += "█";
    constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bar += kParts[eighths % 8];
    const double number = shown_number(plot, series);
    text += fmt::format(
        "{}  {} {} {}\n", indent, padded(cell_text(series.name, kName), name_width, true), bar,
        plot.kind == PlotKind::kBars ? grouped(std::llround(number)) : fmt::format("{:.4g}", number));
  }
  return text;
}

std::string shaded(const Plot& plot, const std::string& indent) {
  const std::string begin = indent + "  ";
  std::string text;
  for (const Series& series : plot.series) {
    const Tensor weights = matrix_of(series);
    const MatrixNames names = names_of(plot, weights.view());
    text += wrapped(series.name, begin);
    const std::string map =
        heat_map(weights.view(), names.rows, names.columns, {.columns = 80 - static_cast<int>(begin.size())});
    for (size_t at = 0; at < map.size(); at = map.find('\n', at) + 1)
      text += begin + map.substr(at, map.find('\n', at) + 1 - at);
  }
  return text + begin + heat_map_legend(HeatMapOptions::Cells::kShades);
}

/// "PASS  trained  (a) A sentence."
std::string clause_for_terminal(const Clause& clause, size_t index) {
  constexpr char kSpace = '\1';  // one that wrapped() keeps
  std::string text =
      wrapped(fmt::format("{0}{3}{3}{1}{3}{3}{2} {4}", verdict_name(clause.verdict),
                          evidence_name(clause.kind), clause_letter(index), kSpace, clause.statement),
              "  ", 80, "    ");
  std::replace(text.begin(), text.end(), kSpace, ' ');
  if (!clause.asked.empty()) text += wrapped("asked: " + clause.asked, "      ", 80, "  ");
  if (!clause.measured.empty()) text += wrapped(found_in(clause), "      ", 80, "  ");
  return text;
}

}  // namespace

std::string plot_for_terminal(const Plot& plot, const std::string& indent) {
  const std::string& label = plot.kind == PlotKind::kLines    ? plot.y_label
                             : plot.kind == PlotKind::kStrips ? plot.x_label
                                                              : std::string();
  return wrapped(plot.title + (label.empty() ? "" : " (" + label + ")") + ":", indent) +
         (plot.kind == PlotKind::kMatrices ? shaded(plot, indent) : bars(plot, indent));
}

std::string summary_for_terminal(const StudyReport& report) {
  const std::string answer = report.answer.empty() ? "" : ": " + report.answer;
  return wrapped(fmt::format("What this run found ({}){}", report.command, answer)) + "\n" +
         wrapped(clause_count(report)) + wrapped(cost_of(report) + ".");
}

std::string report_for_terminal(const StudyReport& report) {
  const std::string indent = "  ";
  std::string text = wrapped(report.question) + "\n";
  if (!report.answer.empty()) text += wrapped(report.answer) + "\n";
  const Plot* const picture = picture_of(report);
  if (picture != nullptr) text += plot_for_terminal(*picture, "") + "\n";
  text += wrapped(clause_count(report)) + table_for_terminal(overview(report), "") + "\n";
  for (const Claim& claim : report.claims) {
    text += wrapped(fmt::format("{}. {}", heading_of(claim), claim.statement));
    if (!claim.remark.empty()) text += wrapped(claim.remark, "    ");
    for (size_t i = 0; i < claim.clauses.size(); ++i) text += clause_for_terminal(claim.clauses[i], i);
    for (const Table& table : claim.tables) text += table_for_terminal(table, indent);
    for (const Plot& plot : claim.plots) {
      if (&plot != picture) text += plot_for_terminal(plot, indent);
    }
    text += "\n";
  }
  std::string originals;
  for (const Claim& claim : report.claims) {
    if (claim.original_words.empty()) continue;
    originals += wrapped(claim.id + ": " + claim.original_words, "", 80, "  ") +
                 wrapped(about_the_original(claim), "  ");
  }
  if (!originals.empty()) text += "What the originals say\n" + originals + "\n";
  return text + wrapped(fmt::format("Repeat with: {} ({}).", report.command, cost_of(report)));
}

}  // namespace mh
