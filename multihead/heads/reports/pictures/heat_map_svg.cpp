#include "multihead/heads/reports/pictures/heat_map_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/pictures/heat_map.h"
#include "multihead/heads/reports/pictures/svg.h"

namespace mh {
namespace {

constexpr double kMargin = 16;     // around everything
constexpr double kWidest = 800;    // panels stand beside each other up to here: a column of text
constexpr int kLongestLabel = 24;  // columns of a terminal
constexpr double kScaleRoom = 52;

std::string scale(double x, double y) {
  return svg_blue_scale(x, y, "attention weight", {"0", "0.5", "1"});
}

std::vector<std::string> short_labels(std::span<const std::string> labels) {
  std::vector<std::string> all;
  for (const std::string& label : labels) all.push_back(cell_text(label, kLongestLabel));
  return all;
}

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, svg_text_width(label));
  return width;
}

/// A head with labels: measured first, then drawn where there is room.
class Panel {
 public:
  explicit Panel(const HeatMapPanel& given)
      : given_(given), queries_(short_labels(given.queries)), keys_(short_labels(given.keys)) {
    if (static_cast<int64_t>(queries_.size()) != given.weights.rows ||
        static_cast<int64_t>(keys_.size()) != given.weights.cols) {
      throw ShapeError(fmt::format("heat map: {} and {} labels for [{},{}] weights", queries_.size(),
                                   keys_.size(), given.weights.rows, given.weights.cols));
    }
    constexpr size_t kMany = 40;
    cell_ = std::max(queries_.size(), keys_.size()) > kMany ? 15 : 26;
    left_ = widest(queries_) + 8;
    top_ = 2 * kSvgTextLine + widest(keys_) * std::sin(kAngle) + 14;
  }

  double width() const {
    const double cells = left_ + cell_ * static_cast<double>(keys_.size()) + widest(keys_) * std::cos(kAngle);
    return std::max({cells, svg_text_width(given_.title) * 1.2, svg_text_width(given_.caption)});
  }
  double height() const { return top_ + cell_ * static_cast<double>(queries_.size()); }

  std::string draw(double x, double y) const {
    std::string out = svg_text(x, y + 14, given_.title, "font-size=\"14\" font-weight=\"bold\"");
    out += svg_text(x, y + 14 + kSvgTextLine, given_.caption, "fill=\"#555\"");
    for (size_t j = 0; j < keys_.size(); ++j) {
      out += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-60)\">{}</text>\n",
                         x + left_ + cell_ * (static_cast<double>(j) + 0.5) + 4, y + top_ - 6,
                         xml_text(keys_[j]));
    }
    for (size_t i = 0; i < queries_.size(); ++i) {
      const double at = y + top_ + cell_ * static_cast<double>(i);
      out += svg_text(x + left_ - 6, at + cell_ / 2 + 4, queries_[i], "text-anchor=\"end\"");
      for (size_t j = 0; j < keys_.size(); ++j) {
        const double weight = given_.weights(static_cast<int64_t>(i), static_cast<int64_t>(j));
        out += fmt::format(
            "<rect class=\"cell\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" {} "
            "shape-rendering=\"crispEdges\"><title>{} to {}: {:.3f}</title></rect>\n",
            x + left_ + cell_ * static_cast<double>(j), at, cell_, cell_, fill(i, weight),
            xml_text(queries_[i]), xml_text(keys_[j]), weight);
      }
    }
    for (const HeatMapCell& cell : given_.framed) {
      MH_ASSERT(cell.query >= 0 && cell.query < given_.weights.rows && cell.key >= 0 &&
                cell.key < given_.weights.cols);
      out += fmt::format(
          "<rect class=\"framed\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"none\" "
          "stroke=\"#D55E00\" stroke-width=\"2.5\"/>\n",
          x + left_ + cell_ * static_cast<double>(cell.key),
          y + top_ + cell_ * static_cast<double>(cell.query), cell_, cell_);
    }
    return out + svg_frame(x + left_, y + top_, cell_ * static_cast<double>(keys_.size()),
                           cell_ * static_cast<double>(queries_.size()), "none");
  }

 private:
  /// The attributes of a cell that give it its colour.
  std::string fill(size_t row, double weight) const {
    if (given_.row_colours.empty()) return fmt::format("fill=\"{}\"", svg_blue(weight));
    return fmt::format("fill=\"{}\" fill-opacity=\"{:.3f}\"",
                       given_.row_colours[row % given_.row_colours.size()], weight);
  }

  static constexpr double kAngle = 1.0472;  // 60 degrees, of the keys' labels

  const HeatMapPanel& given_;
  std::vector<std::string> queries_, keys_;
  double cell_ = 0, left_ = 0, top_ = 0;
};

// A head without labels. Its cells are one wide inside of the group, which keeps large pictures short.
std::string picture_of(ConstMatrixView weights, double x, double y, double cell) {
  std::string out = fmt::format("<g transform=\"translate({:.1f} {:.1f}) scale({:.4f})\">\n", x, y, cell);
  const std::string nothing = svg_blue(0);
  out += fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", weights.cols, weights.rows, nothing);
  for (int64_t i = 0; i < weights.rows; ++i) {
    for (int64_t j = 0; j < weights.cols; ++j) {
      const std::string colour = svg_blue(weights(i, j));
      if (colour == nothing) continue;
      // A little wider than one: otherwise the background shines through between them.
      out +=
          fmt::format("<rect class=\"cell\" x=\"{}\" y=\"{}\" width=\"1.03\" height=\"1.03\" fill=\"{}\"/>\n",
                      j, i, colour);
    }
  }
  return out + "</g>\n" +
         svg_frame(x, y, cell * static_cast<double>(weights.cols), cell * static_cast<double>(weights.rows),
                   "none");
}

}  // namespace

std::string heat_maps_as_svg(std::span<const HeatMapPanel> panels) {
  if (panels.empty()) throw UsageError("heat map: no heads are given to draw");
  std::string body;
  double x = kMargin, y = kMargin, row_height = 0, width = 0;
  for (const HeatMapPanel& given : panels) {
    const Panel panel(given);
    if (x > kMargin && x + panel.width() + kMargin > kWidest) {
      x = kMargin;
      y += row_height + 2 * kMargin;
      row_height = 0;
    }
    body += panel.draw(x, y);
    row_height = std::max(row_height, panel.height());
    x += panel.width() + 2 * kMargin;
    width = std::max(width, x - kMargin);
  }
  y += row_height + kMargin;
  width = std::max(width, 2 * kMargin + kSvgScaleWidth + 20);
  const bool blue = panels.front().row_colours.empty();  // the scale says which number each blue is
  return svg_page(std::ceil(width), std::ceil(y + (blue ? kScaleRoom : 0))) + body +
         (blue ? scale(kMargin, y + 8) : "") + "</svg>\n";
}

std::string head_grid_as_svg(std::string_view title, std::span<const HeadGridRow> rows) {
  if (rows.empty()) throw UsageError("heat map: no heads are given to draw");
  constexpr double kPicture = 110, kBetween = 14;
  size_t most_heads = 1;
  for (const HeadGridRow& row : rows) most_heads = std::max(most_heads, row.heads.size());
  const std::string shown = cell_text(title, 110);
  double y = kMargin + 14, width = std::max(svg_text_width(shown) * 1.2, kSvgScaleWidth + 20);
  width = std::max(width, (kPicture + kBetween) * static_cast<double>(most_heads)) + 2 * kMargin;
  std::string body = svg_text(kMargin, y, shown, "font-size=\"14\" font-weight=\"bold\"");
  y += kSvgTextLine;
  body += svg_text(kMargin, y, "queries down, keys across", "fill=\"#555\"");
  for (const HeadGridRow& row : rows) {
    y += 2 * kSvgTextLine;
    body += svg_text(kMargin, y, row.title, "font-weight=\"bold\"");
    y += kSvgTextLine;
    int64_t longest = 1;
    for (const ConstMatrixView& head : row.heads) longest = std::max({longest, head.rows, head.cols});
    const double cell = kPicture / static_cast<double>(longest);
    double tallest = 0;
    for (size_t h = 0; h < row.heads.size(); ++h) {
      const ConstMatrixView& head = row.heads[h];
      const double x = kMargin + (kPicture + kBetween) * static_cast<double>(h);
      body += svg_text(x, y, fmt::format("head {}", h), "fill=\"#555\"");
      body += picture_of(head, x, y + 6, cell);
      tallest = std::max(tallest, cell * static_cast<double>(head.rows));
    }
    y += 6 + tallest;
  }
  y += kMargin + 8;
  return svg_page(std::ceil(width), std::ceil(y + kScaleRoom)) + body + scale(kMargin, y) + "</svg>\n";
}

}  // namespace mh
