#include "multihead/heads/reports/pictures/draw_lens.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/pictures/svg.h"

namespace mh {
namespace {

constexpr double kLensEdge = 16, kLensCell = 84, kLensRow = 20;
constexpr double kPlaceRoom = 64;  // for the name of a place
constexpr int kCellColumns = 11;   // of a word

std::string tip_of(const LensReading& reading, const std::string& place, const std::string& position) {
  std::string tip = fmt::format("{}, {}:", place, position);
  for (const LensWord& word : reading.best) tip += fmt::format(" {} {:.4f}", word.token, word.score);
  return tip;
}

std::string position_name(const LensPosition& position) {
  return position.position ? fmt::format("{} {}", *position.position, position.token)
                           : std::string("the text");
}

}  // namespace

std::string draw_lens(const LensReport& lens) {
  if (lens.says == LensSays::kVectors)
    throw UsageError("a picture shows words or labels, and this model makes vectors; leave it out");
  const double left = kLensEdge + kPlaceRoom, top = kLensEdge + 4 * kSvgTextLine + 6;
  const double cells = kLensCell * static_cast<double>(lens.positions.size()),
               bottom = top + kLensRow * static_cast<double>(lens.places.size());
  const std::string title = "What the stream says after each layer, read by the model's own end";
  const double width =
      std::max(left + cells, kLensEdge + std::max(kSvgScaleWidth, 1.2 * svg_text_width(title))) + kLensEdge;
  std::string out = svg_page(width, bottom + kSvgScaleHeight + 3 * kLensEdge);
  out += svg_text(kLensEdge, kLensEdge + 14, title, "font-size=\"14\" font-weight=\"bold\"");
  out += svg_text(kLensEdge, kLensEdge + 14 + kSvgTextLine,
                  "Layers down, the tokens that are read across; in each cell the most probable word.",
                  "fill=\"#555\"");
  for (size_t i = 0; i < lens.positions.size(); ++i) {
    const double x = left + kLensCell * (static_cast<double>(i) + 0.5);
    out += svg_text(x, top - 8, cell_text(position_name(lens.positions[i]), kCellColumns + 2),
                    "text-anchor=\"middle\" font-weight=\"bold\"");
  }
  for (size_t place = 0; place < lens.places.size(); ++place) {
    const double y = top + kLensRow * static_cast<double>(place);
    out += svg_text(left - 8, y + kLensRow / 2 + 4, lens.places[place].name(), "text-anchor=\"end\"");
    for (size_t i = 0; i < lens.positions.size(); ++i) {
      const LensReading& reading = lens.at(place, i);
      const LensWord& first = reading.best[0];
      const double x = left + kLensCell * static_cast<double>(i);
      constexpr double kDark = 0.5;  // from here on white letters are easier to read
      out += fmt::format(
          "<g><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
          "shape-rendering=\"crispEdges\"/>\n",
          xml_text(tip_of(reading, lens.places[place].site, position_name(lens.positions[i]))), x, y,
          kLensCell, kLensRow, svg_blue(first.score));
      out += svg_text(
          x + kLensCell / 2, y + kLensRow / 2 + 4, cell_text(first.token, kCellColumns),
          fmt::format("text-anchor=\"middle\" fill=\"{}\"", first.score > kDark ? "white" : "black"));
      out += "</g>\n";
    }
  }
  out += svg_frame(left, top, cells, bottom - top, "none");
  out += svg_blue_scale(kLensEdge, bottom + kLensEdge, "probability", {"0", "0.5", "1"});
  return out + "</svg>\n";
}

}  // namespace mh
