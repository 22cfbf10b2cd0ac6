#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "lab/studies/plot_parts.h"
#include "lab/studies/report.h"
#include "multihead/heads/reports/pictures/svg.h"

namespace mh {
namespace {

constexpr double kFrameLeft = 76, kFrameWidth = 460, kFrameHeight = 300, kBelow = 50;

/// A line through the points that both axes take; 0 lies on the edge of a logarithmic one.
std::string line_through(std::span<const double> xs, std::span<const double> ys, const Axis& x, const Axis& y,
                         const std::string& stroke) {
  std::string points;
  for (size_t n = 0; n < std::min(xs.size(), ys.size()); ++n) {
    if (x.takes(xs[n]) && (y.takes(ys[n]) || ys[n] == 0))
      points += fmt::format("{:.1f},{:.1f} ", x.place(xs[n]), y.takes(ys[n]) ? y.place(ys[n]) : y.from);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", points, stroke);
}

std::string dots(std::span<const double> xs, std::span<const double> ys, const Axis& x, const Axis& y,
                 const std::string& look) {
  std::string out;
  for (size_t n = 0; n < std::min(xs.size(), ys.size()); ++n) {
    if (x.takes(xs[n]) && y.takes(ys[n])) out += svg_circle(x.place(xs[n]), y.place(ys[n]), look);
  }
  return out;
}

}  // namespace

std::string lines_as_svg(const Plot& plot) {
  Axis x{.logarithmic = plot.log_x, .from = kFrameLeft, .to = kFrameLeft + kFrameWidth};
  Axis y{.logarithmic = plot.log_y};
  double names = 0;
  bool seeds = false;
  for (const Series& s : plot.series) {
    for (const double v : s.x) x.meet(v);
    for (const double v : s.y) y.meet(v);
    for (const auto& line : s.lines) {
      for (const double v : line) y.meet(v);
    }
    names = std::max(names, svg_text_width(s.name));
    seeds = seeds || !s.lines.empty();
  }
  x.widen(0), y.widen(plot.log_y ? 0 : 0.05);
  const std::string key = "thick: mean; thin: each seed";
  if (seeds) names = std::max(names, svg_text_width(key) - 26);
  const double right = x.to, width = right + 48 + names;
  const Heading heading(plot.title, width - 32);
  const double top = heading.bottom() + kSvgTextLine, bottom = top + kFrameHeight;
  y.from = bottom, y.to = top;
  std::string out = heading.draw(width, bottom + kBelow, 16) + x_axis(x, plot.x_label, top, bottom);
  // Above its axis, where it can be read without turning the head.
  out +=
      fmt::format("<text x=\"16\" y=\"{:.1f}\" fill=\"#555\">{}</text>\n", top - 10, xml_text(plot.y_label));
  for (const Tick& tick : ticks(y)) {
    const double place = y.place(tick.at);
    out += svg_line(kFrameLeft, right, place, place, kGrid) +
           svg_text(kFrameLeft - 6, place + 4, tick.number, "text-anchor=\"end\"");
  }
  std::string means;  // above all seeds
  double at = top + 10;
  for (size_t i = 0; i < plot.series.size(); ++i, at += kSvgTextLine) {
    const Series& s = plot.series[i];
    const char* colour = kPlotColours[i % std::size(kPlotColours)];
    const char* dash = i < std::size(kPlotColours) ? "" : " stroke-dasharray=\"5 3\"";
    for (const auto& line : s.lines) {
      out += line_through(s.x, line, x, y,
                          fmt::format("stroke=\"{}\" stroke-width=\"1\" opacity=\"0.5\"{}", colour, dash));
      if (s.x.size() == 1)
        out += dots(s.x, line, x, y, fmt::format("r=\"2\" fill=\"{}\" opacity=\"0.5\"", colour));
    }
    const std::string thick = fmt::format("stroke=\"{}\" stroke-width=\"3\"{}", colour, dash);
    means += line_through(s.x, s.y, x, y, thick);
    if (s.x.size() <= 12) means += dots(s.x, s.y, x, y, fmt::format("r=\"4\" fill=\"{}\"", colour));
    means += svg_line(right + 12, right + 32, at, at, thick) + svg_text(right + 38, at + 4, s.name);
  }
  out += means;
  if (seeds) out += svg_text(right + 12, at + 10, key, "fill=\"#555\"");
  return out + "</svg>\n";
}

std::string plot_as_svg(const Plot& plot) {
  switch (plot.kind) {
    case PlotKind::kLines:
      return lines_as_svg(plot);
    case PlotKind::kStrips:
      return strips_as_svg(plot);
    case PlotKind::kBars:
      return bars_as_svg(plot);
    case PlotKind::kMatrices:
      break;
  }
  return matrices_as_svg(plot);
}

}  // namespace mh
