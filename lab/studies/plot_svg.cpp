#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/studies/report.h"
#include "lab/studies/statistics.h"
#include "multihead/analysis/svg.h"

namespace mh {
namespace {

constexpr double kHeight = 400, kLeft = 70, kRight = 530, kTop = 40,
                 kBottom = 50;  // of the frame, the legend beside it
constexpr double kLetter = 7;   // about as wide as the widest font makes the mean letter
// Told apart by people who do not see all colours (Okabe and Ito 2008).
constexpr const char* kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                    "#E69F00", "#56B4E9", "#000000"};

struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  bool logarithmic = false;
  double from = 0, to = 1;  // in the picture

  void meet(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double place(double value) const {
    const auto f = [this](double v) { return logarithmic ? std::log(v) : v; };
    const double span = f(high) - f(low);
    return span > 0 ? from + (f(value) - f(low)) / span * (to - from) : (from + to) / 2;
  }
};

/// Round numbers between the axis' ends, five or so.
std::vector<double> ticks(const Axis& axis) {
  std::vector<double> at;
  if (axis.logarithmic) {
    for (double v = std::pow(2, std::ceil(std::log2(axis.low) - 1e-9)); v <= axis.high * (1 + 1e-9); v *= 2)
      at.push_back(v);
    return at;
  }
  const double span = axis.high - axis.low;
  if (!(span > 0)) return {axis.low};
  double step = std::pow(10, std::floor(std::log10(span / 5)));
  while (span / step > 6) step *= span / step > 12 ? 5 : 2;
  for (double v = std::ceil(axis.low / step - 1e-9) * step; v <= axis.high + step * 1e-9; v += step)
    at.push_back(v);
  return at;
}

std::string head_of_picture(const Plot& plot, double width, double height, double left) {
  return svg_page(width, height) +
         fmt::format("<text x=\"{}\" y=\"22\" font-size=\"14\">{}</text>\n", left, xml_text(plot.title));
}

/// Vertical lines at the ticks, their numbers, and what the axis is. height: of the picture.
std::string x_axis(const Axis& x, const std::string& label, double height) {
  std::string out;
  for (const double v : ticks(x)) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" "
        "y=\"{3}\" text-anchor=\"middle\">{4:.4g}</text>\n",
        x.place(v), kTop, height - kBottom, height - kBottom + 16, v);
  }
  return out + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (x.from + x.to) / 2,
                           height - 12, xml_text(label));
}

/// A row a series; a dashed line goes down from the first one's mean.
std::string strips_as_svg(const Plot& plot) {
  constexpr double kRow = 24, kSpan = 460;
  size_t longest = 0;
  Axis x;
  for (const Series& s : plot.series) {
    longest = std::max(longest, s.name.size());
    for (const double v : s.y) x.meet(v);
    const Interval mean = interval_of(s.y);
    if (std::isfinite(mean.half)) x.meet(mean.low()), x.meet(mean.high());
  }
  if (!(x.low <= x.high)) x.low = 0, x.high = 1;
  x.from = 30 + kLetter * static_cast<double>(longest);
  x.to = x.from + kSpan;
  const double margin = (x.high - x.low) * 0.03;
  x.low -= margin, x.high += margin;
  const double height = kTop + kRow * static_cast<double>(plot.series.size()) + kBottom;
  std::string out = head_of_picture(plot, x.to + 20, height, 16) + x_axis(x, plot.x_label, height);
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    if (s.y.empty()) continue;
    const double at = kTop + kRow * (static_cast<double>(i) + 0.5);
    const Interval mean = interval_of(s.y);
    if (i == 0) {
      out += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#888\" "
          "stroke-dasharray=\"4 3\"/>\n",
          x.place(mean.mean), kTop, height - kBottom);
    }
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", x.from - 10, at + 4,
                       xml_text(s.name));
    if (std::isfinite(mean.half)) {
      out += fmt::format(
          "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"8\" "
          "opacity=\"0.25\"/>\n",
          x.place(mean.low()), x.place(mean.high()), at, at, kColours[0]);
    }
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"2\"/>\n",
        x.place(mean.mean), at - 8, at + 8, kColours[0]);
    for (const double v : s.y) {
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" opacity=\"0.8\"/>\n",
                         x.place(v), at, kColours[1]);
    }
  }
  return out + "</svg>\n";
}

}  // namespace

std::string plot_as_svg(const Plot& plot) {
  if (plot.kind == PlotKind::kStrips) return strips_as_svg(plot);
  Axis x{.logarithmic = plot.log_x, .from = kLeft, .to = kRight};
  Axis y{.logarithmic = false, .from = kHeight - kBottom, .to = kTop};
  for (const Series& s : plot.series) {
    for (const double v : s.x) x.meet(v);
    for (const auto* values : {&s.y, &s.low, &s.high}) {
      for (const double v : *values) y.meet(v);
    }
  }
  if (!(x.low <= x.high)) x.low = 1, x.high = 2;
  if (!(y.low <= y.high)) y.low = 0, y.high = 1;
  const double margin = (y.high - y.low) * 0.05;
  y.low -= margin, y.high += margin;
  size_t longest = 0;
  for (const Series& s : plot.series) longest = std::max(longest, s.name.size());
  const double width = kRight + 48 + kLetter * static_cast<double>(longest);
  std::string out = head_of_picture(plot, width, kHeight, kLeft) + x_axis(x, plot.x_label, kHeight);
  for (const double v : ticks(y)) {
    out += fmt::format(
        "<line x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" stroke=\"#ddd\"/><text x=\"{3}\" "
        "y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        y.place(v), kLeft, kRight, kLeft - 6, y.place(v) + 4, std::abs(v) < 1e-12 ? 0 : v);
  }
  out += fmt::format("<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     (kTop + kHeight - kBottom) / 2, xml_text(plot.y_label));
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    const char* colour = kColours[i % std::size(kColours)];
    const char* dash = i < std::size(kColours) ? "" : " stroke-dasharray=\"5 3\"";
    if (s.low.size() == s.x.size() && s.high.size() == s.x.size() && s.x.size() > 1) {
      std::string band;
      for (size_t n = 0; n < s.x.size(); ++n)
        band += fmt::format("{:.1f},{:.1f} ", x.place(s.x[n]), y.place(s.high[n]));
      for (size_t n = s.x.size(); n-- > 0;)
        band += fmt::format("{:.1f},{:.1f} ", x.place(s.x[n]), y.place(s.low[n]));
      out += fmt::format("<polygon points=\"{}\" fill=\"{}\" opacity=\"0.15\"/>\n", band, colour);
    }
    std::string points;
    for (size_t n = 0; n < s.x.size(); ++n)
      points += fmt::format("{:.1f},{:.1f} ", x.place(s.x[n]), y.place(s.y[n]));
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
                       colour, dash);
    for (size_t n = 0; n < s.x.size() && s.x.size() <= 12; ++n) {
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x.place(s.x[n]),
                         y.place(s.y[n]), colour);
    }
    const double at = kTop + 10 + 18 * static_cast<double>(i);
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"2\"{4}/><text "
        "x=\"{5}\" "
        "y=\"{6}\">{7}</text>\n",
        kRight + 12, kRight + 32, at, colour, dash, kRight + 38, at + 4, xml_text(s.name));
  }
  return out + "</svg>\n";
}

}  // namespace mh
