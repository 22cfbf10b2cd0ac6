#include "lab/studies/plot_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/studies/report.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/pictures/svg.h"

namespace mh {

bool Axis::takes(double value) const {
  return std::isfinite(value) && (!logarithmic || value > 0);
}

void Axis::meet(double value) {
  if (!takes(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

void Axis::widen(double part) {
  if (!(low <= high)) low = 1, high = 2;
  const double margin = (high - low) * part;
  low -= margin, high += margin;
}

double Axis::place(double value) const {
  const auto f = [this](double v) { return logarithmic ? std::log(v) : v; };
  const double span = f(high) - f(low);
  return span > 0 ? from + (f(value) - f(low)) / span * (to - from) : (from + to) / 2;
}

namespace {

constexpr size_t kMostTicks = 8;

/// Without an exponent where people read numbers without one; digits of more than 9,999 in groups of three.
std::string plain_number(double value, int decimals) {
  const double size = std::abs(value);
  if (size > 0 && (size < 1e-5 || size >= 1e9)) return fmt::format("{:.3g}", value);
  std::string text = fmt::format("{:.{}f}", size, decimals);
  if (size >= 1e4) {
    for (size_t at = std::min(text.find('.'), text.size()); at > 3;) text.insert(at -= 3, ",");
  }
  return (value < 0 ? "-" : "") + text;
}

/// As many decimals as tell the number to four digits.
int decimals_of(double value) {
  for (int decimals = 0; decimals < 8; ++decimals) {
    const double scaled = std::abs(value) * std::pow(10, decimals);
    if (std::abs(scaled - std::round(scaled)) <= 1e-4 * std::max(1e-9, scaled)) return decimals;
  }
  return 8;
}

std::vector<double> places_of_ticks(const Axis& axis) {
  std::vector<double> at;
  if (!(axis.high > axis.low)) return {axis.low};
  if (axis.logarithmic) {
    const double factor = axis.high > 1e4 * axis.low ? 10 : 2;
    const double first = std::ceil(std::log(axis.low) / std::log(factor) - 1e-9);
    for (double v = std::pow(factor, first); v <= axis.high * (1 + 1e-9); v *= factor) at.push_back(v);
    if (at.size() < 2) return {axis.low, axis.high};
    const size_t step = (at.size() + kMostTicks - 1) / kMostTicks;
    std::vector<double> some;
    for (size_t i = 0; i < at.size(); i += step) some.push_back(at[i]);
    return some;
  }
  const double span = axis.high - axis.low;
  double step = std::pow(10, std::floor(std::log10(span / 5)));
  while (span / step > 6) step *= span / step > 12 ? 5 : 2;
  const double first = std::ceil(axis.low / step - 1e-9);
  for (int i = 0; (first + i) * step <= axis.high + step * 1e-9; ++i) at.push_back((first + i) * step);
  return at;
}

}  // namespace

std::vector<Tick> ticks(const Axis& axis) {
  const std::vector<double> places = places_of_ticks(axis);
  int decimals = 0;
  for (const double v : places) decimals = std::max(decimals, decimals_of(v));
  std::vector<Tick> all;
  for (const double v : places)
    all.push_back({v, plain_number(v, axis.logarithmic ? decimals_of(v) : decimals)});
  return all;
}

Heading::Heading(const std::string& title, double width) {
  const auto letters = static_cast<size_t>(std::max(20.0, width / (kSvgLetter * 14 / 12)));
  const std::string text = wrapped(title, "", letters);
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines_.push_back(text.substr(at, text.find('\n', at) - at));
}

double Heading::bottom() const {
  return 22 + kSvgTextLine * static_cast<double>(lines_.size());
}

std::string Heading::draw(double width, double height, double left) const {
  std::string out = svg_page(std::ceil(width), std::ceil(height));
  for (size_t i = 0; i < lines_.size(); ++i) {
    out += svg_text(left, 22 + kSvgTextLine * static_cast<double>(i), lines_[i], "font-size=\"14\"");
  }
  return out;
}

std::string x_axis(const Axis& x, const std::string& label, double top, double bottom) {
  constexpr std::string_view kMiddle = "text-anchor=\"middle\"";
  std::string out;
  for (const Tick& tick : ticks(x)) {
    const double at = x.place(tick.at);
    out += svg_line(at, at, top, bottom, kGrid) + svg_text(at, bottom + 16, tick.number, kMiddle);
  }
  return out + svg_text((x.from + x.to) / 2, bottom + 38, label, kMiddle);
}

Tensor matrix_of(const Series& series) {
  const size_t columns = series.lines.empty() ? 0 : series.lines.front().size();
  if (columns == 0) throw ShapeError(fmt::format("plot: matrix '{}' is empty", series.name));
  Tensor matrix(static_cast<int64_t>(series.lines.size()), static_cast<int64_t>(columns));
  for (size_t i = 0; i < series.lines.size(); ++i) {
    if (series.lines[i].size() != columns)
      throw ShapeError(fmt::format("plot: row {} of matrix '{}' has {} numbers, the first {}", i, series.name,
                                   series.lines[i].size(), columns));
    for (size_t j = 0; j < columns; ++j)
      matrix(static_cast<int64_t>(i), static_cast<int64_t>(j)) = static_cast<float>(series.lines[i][j]);
  }
  return matrix;
}

MatrixNames names_of(const Plot& plot, ConstMatrixView matrix) {
  MatrixNames names{plot.row_names, plot.column_names};
  const auto number = [](std::vector<std::string>& all, int64_t count) {
    for (int64_t i = 1; i <= count; ++i) all.push_back(std::to_string(i));
  };
  if (names.rows.empty()) number(names.rows, matrix.rows);
  if (names.columns.empty()) number(names.columns, matrix.cols);
  return names;
}

}  // namespace mh
