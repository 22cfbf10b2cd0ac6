#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/analysis/heat_map.h"
#include "multihead/studies/report.h"
#include "multihead/studies/statistics.h"

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
      break;
  }
  return "MEASURED";
}

std::string_view said_name(Said said) {
  switch (said) {
    case Said::kRight:
      return "right";
    case Said::kHalfRight:
      return "half right";
    case Said::kWrong:
      return "wrong";
    case Said::kNotSaid:
      break;
  }
  return "not said there";
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

std::string table_for_terminal(const Table& table, const std::string& indent) {
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = width_of(table.columns[c]);
    for (const auto& row : table.rows) width = std::max(width, c < row.size() ? width_of(row[c]) : 0);
    widths.push_back(width);
  }
  std::string text = table.caption.empty() ? "" : wrapped(table.caption + ":", indent);
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out = indent + "  ";
    for (size_t c = 0; c < cells.size(); ++c) {
      out += (c == 0 ? "" : "  ") + padded(cells[c], c < widths.size() ? widths[c] : 0, c == 0);
    }
    text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  };
  line(table.columns);
  for (const auto& row : table.rows) line(row);
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
    text += wrapped(fmt::format("{}  {}", claim.id, claim.statement));
    for (const Table& table : claim.tables) text += table_for_terminal(table, "    ");
    for (const Plot& plot : claim.plots) text += plot_for_terminal(plot, "    ");
    text += wrapped("measured: " + claim.measured, "    ");
    if (!claim.original.empty()) {
      text += wrapped(fmt::format("said there ({}): {}", said_name(claim.said), claim.original), "    ");
    }
    text += wrapped(fmt::format("{}{}", verdict_name(claim.verdict),
                                claim.tolerance.empty() ? "" : " (asked: " + claim.tolerance + ")"),
                    "    ") +
            "\n";
  }
  return report.conclusion.empty() ? text : text + wrapped(report.conclusion);
}

}  // namespace mh
