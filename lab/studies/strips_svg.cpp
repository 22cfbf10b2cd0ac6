#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lab/studies/plot_parts.h"
#include "lab/studies/statistics.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/pictures/svg.h"

namespace mh {

namespace {

/// Where the dashed line stands; not a number where there is none.
double reference_of(const Plot& plot) {
  if (plot.reference == PlotReference::kZero) return 0;
  if (plot.reference == PlotReference::kNothing || plot.series.empty() || plot.series[0].y.empty())
    return std::numeric_limits<double>::quiet_NaN();
  return interval_of(plot.series[0].y).mean;
}

}  // namespace

/// A row for each series, and a dashed line at what they are compared with.
std::string strips_as_svg(const Plot& plot) {
  constexpr double kRow = 24, kSpan = 460, kBelowStrips = 50;
  double names = 0;
  Axis x;
  for (const Series& s : plot.series) {
    names = std::max(names, svg_text_width(s.name));
    for (const double v : s.y) x.meet(v);
    if (s.y.empty()) continue;
    const Interval mean = interval_of(s.y);
    x.meet(mean.low()), x.meet(mean.high());
  }
  const double reference = reference_of(plot);
  x.meet(reference);
  x.from = 30 + names;
  x.to = x.from + kSpan;
  x.widen(0.03);
  const Heading heading(plot.title, x.to);
  const double top = heading.bottom(), bottom = top + kRow * static_cast<double>(plot.series.size());
  std::string out = heading.draw(x.to + 30, bottom + kBelowStrips, 16) + x_axis(x, plot.x_label, top, bottom);
  if (x.takes(reference)) {
    const double at = x.place(reference);
    out += svg_line(at, at, top, bottom, "stroke=\"#888\" stroke-dasharray=\"4 3\"") + "\n";
  }
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    if (s.y.empty()) continue;
    const double at = top + kRow * (static_cast<double>(i) + 0.5);
    const Interval mean = interval_of(s.y);
    out += svg_text(x.from - 10, at + 4, s.name, "text-anchor=\"end\"");
    if (std::isfinite(mean.half)) {
      const std::string look =
          fmt::format("stroke=\"{}\" stroke-width=\"8\" opacity=\"0.25\"", kPlotColours[0]);
      out += svg_line(x.place(mean.low()), x.place(mean.high()), at, at, look) + "\n";
    }
    if (x.takes(mean.mean)) {
      const double place = x.place(mean.mean);
      out += svg_line(place, place, at - 8, at + 8,
                      fmt::format("stroke=\"{}\" stroke-width=\"2\"", kPlotColours[0])) +
             "\n";
    }
    for (const double v : s.y) {
      if (!x.takes(v)) continue;
      out += svg_circle(x.place(v), at, fmt::format("r=\"3\" fill=\"{}\" opacity=\"0.8\"", kPlotColours[1]));
    }
  }
  return out + "</svg>\n";
}

std::string bars_as_svg(const Plot& plot) {
  constexpr double kRow = 26, kSpan = 330, kNumber = 80;
  double names = 0;
  Axis x;
  x.meet(0);
  for (const Series& s : plot.series) {
    names = std::max(names, svg_text_width(s.name));
    for (const double v : s.y) x.meet(v);
  }
  x.from = 30 + names, x.to = x.from + kSpan;
  const Heading heading(plot.title, x.to);
  const double top = heading.bottom(), bottom = top + kRow * static_cast<double>(plot.series.size());
  std::string out = heading.draw(x.to + kNumber, bottom + 40, 16);
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& s = plot.series[i];
    if (s.y.empty()) continue;
    const double at = top + kRow * (static_cast<double>(i) + 0.5), end = x.place(s.y.front());
    out += svg_text(x.from - 10, at + 4, s.name, "text-anchor=\"end\"");
    const bool marked = std::ranges::count(plot.marks, std::vector{static_cast<int32_t>(i)}) > 0;
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" fill=\"{}\"/>\n",
                       x.from, at - 8, end - x.from, kPlotColours[marked ? 1 : 0]);
    out += svg_text(end + 6, at + 4, grouped(std::llround(s.y.front())));
  }
  return out + svg_text(x.from, bottom + 20, plot.x_label, "fill=\"#555\"") + "</svg>\n";
}

}  // namespace mh
