#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "lab/studies/plot_parts.h"
#include "multihead/base/error.h"
#include "multihead/heads/reports/pictures/heat_map_svg.h"

namespace mh {

/// The heat maps of heat_map_svg.h below the plot's title.
std::string matrices_as_svg(const Plot& plot) {
  std::vector<Tensor> weights;
  std::vector<MatrixNames> names;
  for (const Series& s : plot.series) {
    weights.push_back(matrix_of(s));
    names.push_back(names_of(plot, weights.back().view()));
  }
  std::vector<std::vector<HeatMapCell>> marked(plot.series.size());
  for (const std::vector<int32_t>& mark : plot.marks) {
    if (mark.size() != 3 || mark[0] < 0 || static_cast<size_t>(mark[0]) >= marked.size())
      throw ShapeError(fmt::format("plot '{}': expected marks [series, row, column]", plot.title));
    marked[static_cast<size_t>(mark[0])].push_back({.query = mark[1], .key = mark[2]});
  }
  std::vector<HeatMapPanel> panels;
  for (size_t i = 0; i < weights.size(); ++i) {
    panels.push_back({.title = plot.series[i].name,
                      .caption = plot.y_label,
                      .weights = weights[i].view(),
                      .queries = names[i].rows,
                      .keys = names[i].columns,
                      .row_colours = plot.row_colours ? std::span<const char* const>(kPlotColours)
                                                      : std::span<const char* const>(),
                      .framed = marked[i]});
  }
  std::string maps = heat_maps_as_svg(panels);
  double width = 0, height = 0;
  const size_t box = maps.find("viewBox");
  MH_ASSERT(box != std::string::npos &&
            std::sscanf(maps.c_str() + box, "viewBox=\"0 0 %lf %lf\"", &width, &height) == 2);
  const Heading heading(plot.title, width - 32);
  const double top = heading.bottom() - 8;
  maps.insert(maps.find(' '), fmt::format(" y=\"{}\" width=\"{}\" height=\"{}\"", top, width, height));
  return heading.draw(std::max(width, 400.0), top + height, 16) + maps + "</svg>\n";
}

}  // namespace mh
