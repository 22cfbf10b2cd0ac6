#include "multihead/heads/reports/pictures/draw_similar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "multihead/heads/reports/pictures/svg.h"
#include "multihead/nn/attention_place.h"

namespace mh {
namespace {

constexpr double kEdge = 16;
constexpr double kTree = 200;     // width of the dendrogram
constexpr double kStrip = 10;     // width of the strip that shows layers
constexpr double kMatrix = 1000;  // width of the matrix, but cells are neither too small nor too large
constexpr double kSmallestCell = 7, kLargestCell = 22;
constexpr const char* kOfCluster = "#D55E00";  // of Okabe and Ito 2008

/// From the first layer to the last, light to dark; a hue that the matrix does not have.
std::string layer_colour(int layer, int layers) {
  constexpr std::array<double, 3> kFirst{254, 230, 206}, kLast{127, 39, 4};
  const double share = layers < 2 ? 0 : static_cast<double>(layer) / (layers - 1);
  const auto mixed = [&](size_t c) { return std::lround(kFirst[c] + share * (kLast[c] - kFirst[c])); };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0), mixed(1), mixed(2));
}

/// The heads of one kind; its top left corner is at (kEdge, top).
class KindPicture {
 public:
  KindPicture(const SimilarKind& kind, double top) : kind_(kind), order_(kind.tree.order()) {
    heads_ = static_cast<double>(order_.size());
    cell_ = std::clamp(kMatrix / heads_, kSmallestCell, kLargestCell);
    letters_ = std::min(11.0, cell_ * 0.95);
    for (const int h : order_) {
      const ComparedHead& head = kind.compared.heads[static_cast<size_t>(h)];
      const int layer = head.layer;
      names_.push_back(fmt::format("{}.{}", layer, head.head));
      layers_.push_back(layer);
    }
    size_t longest = 0;
    for (const std::string& name : names_) longest = std::max(longest, name.size());
    names_width_ = 0.6 * letters_ * static_cast<double>(longest) + 6;
    left_ = kEdge + kTree + names_width_ + kStrip + 4;
    top_ = top + 3 * kSvgTextLine + 2 * kSvgTextLine + std::max(names_width_, kSvgTextLine);
    for (const auto* all : {&kind.compared.divergence, &kind.compared.null_divergence})
      largest_ = all->empty() ? largest_ : std::max(largest_, *std::max_element(all->begin(), all->end()));
  }

  double width() const { return std::max(left_ + cell_ * heads_, kEdge + kWords) + kEdge; }
  double bottom() const { return top_ + cell_ * heads_; }

  std::string draw() const {
    const double title = top_ - 4 * kSvgTextLine - std::max(names_width_, kSvgTextLine);
    std::string out =
        svg_text(kEdge, title,
                 fmt::format("{}: {} heads, named layer.head", name_of(kind_.compared.kind), order_.size()),
                 "font-size=\"14\" font-weight=\"bold\"");
    out += svg_text(kEdge, title + kSvgTextLine,
                    "Divergence of any two heads below the diagonal; above it, of the same heads with their "
                    "weights permuted.",
                    "fill=\"#555\"");
    out += svg_text(
        kEdge, title + 2 * kSvgTextLine - 2,
        "The darker, the more alike. Framed: clusters far below chance. Brown: layers, the first is light.",
        "fill=\"#555\"");
    out += svg_blue_scale(kEdge + kWords - kSvgScaleWidth, title + kSvgTextLine + 8, "divergence, nats",
                          {fmt::format("{:.2f}", largest_), fmt::format("{:.2f}", largest_ / 2), "0"});
    return out + tree() + strip() + matrix() + names();
  }

 private:
  static constexpr double kWords = 860;  // what the captions and the scale need

  double row_of(size_t place) const { return top_ + cell_ * (static_cast<double>(place) + 0.5); }

  std::string tree() const {
    const double right = kEdge + kTree;
    const double highest = kind_.tree.merges.empty() ? 1 : std::max(kind_.tree.merges.back().height, 1e-9);
    std::vector<double> x(static_cast<size_t>(kind_.tree.points), right), y(x.size());
    for (size_t place = 0; place < order_.size(); ++place)
      y[static_cast<size_t>(order_[place])] = row_of(place);
    std::vector<bool> in_cluster(x.size() + kind_.tree.merges.size(), false);
    for (const int cluster : kind_.clusters) in_cluster[static_cast<size_t>(cluster)] = true;
    for (size_t k = kind_.tree.merges.size(); k-- > 0;) {  // from the root down
      const Merge& merge = kind_.tree.merges[k];
      if (!in_cluster[static_cast<size_t>(kind_.tree.points) + k]) continue;
      in_cluster[static_cast<size_t>(merge.first)] = in_cluster[static_cast<size_t>(merge.second)] = true;
    }
    std::string inside, outside;
    for (size_t k = 0; k < kind_.tree.merges.size(); ++k) {
      const Merge& merge = kind_.tree.merges[k];
      const auto a = static_cast<size_t>(merge.first), b = static_cast<size_t>(merge.second);
      const double at = right - kTree * merge.height / highest;
      (in_cluster[x.size()] ? inside : outside) +=
          fmt::format("M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}", x[a], y[a], at, y[b], x[b]);
      x.push_back(at);
      y.push_back((y[a] + y[b]) / 2);
    }
    const auto lines = [](const std::string& path, std::string_view colour) {
      return path.empty() ? std::string()
                          : fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", path, colour);
    };
    std::string out = lines(outside, "#555") + lines(inside, kOfCluster);
    if (kind_.tree.merges.empty()) return out;
    out += svg_text(right, top_ - 6, "0", "text-anchor=\"end\" fill=\"#555\"");
    out += svg_text(right - kTree / 2, top_ - 6, "joined at", "text-anchor=\"middle\" fill=\"#555\"");
    return out + svg_text(kEdge, top_ - 6, fmt::format("{:.2f}", highest), "fill=\"#555\"");
  }

  std::string strip() const {
    const int layers = 1 + *std::max_element(layers_.begin(), layers_.end());
    std::string out;
    for (size_t place = 0; place < order_.size(); ++place)
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"{}\" height=\"{:.2f}\" "
          "fill=\"{}\"><title>{}</title></rect>\n",
          left_ - kStrip - 2, row_of(place) - cell_ / 2, kStrip, cell_ + 0.05,
          layer_colour(layers_[place], layers),
          xml_text(kind_.compared.heads[static_cast<size_t>(order_[place])].name()));
    return out;
  }

  /// Equal neighbours are one line, and all lines of one blue one path, which keeps large pictures short.
  std::string matrix() const {
    constexpr int kBlues = 32;
    std::vector<std::string> paths(kBlues);
    for (size_t i = 0; i < order_.size(); ++i) {
      const auto blue = [&](size_t j) {
        const auto g = static_cast<size_t>(order_[i]), h = static_cast<size_t>(order_[j]);
        const double divergence = j <= i ? kind_.compared.divergence_of(g, h) : kind_.compared.null_of(g, h);
        const double share = largest_ > 0 ? 1 - divergence / largest_ : 1;
        return std::min(static_cast<int>(share * kBlues), kBlues - 1);
      };
      for (size_t j = 0, next = 0; j < order_.size(); j = next) {
        const int of = blue(j);
        for (next = j + 1; next < order_.size() && blue(next) == of;) ++next;
        paths[static_cast<size_t>(of)] += fmt::format("M{} {}.5h{}", j, i, next - j);
      }
    }
    std::string out = fmt::format(
        "<g transform=\"translate({:.1f} {:.1f}) scale({:.4f})\" fill=\"none\" "
        "shape-rendering=\"crispEdges\">\n",
        left_, top_, cell_);
    for (size_t blue = 0; blue < paths.size(); ++blue) {
      if (!paths[blue].empty())  // a little wider than one: otherwise the background shines through
        out += fmt::format("<path stroke=\"{}\" stroke-width=\"1.03\" d=\"{}\"/>\n",
                           svg_blue((static_cast<double>(blue) + 0.5) / kBlues), paths[blue]);
    }
    out += "</g>\n" + svg_frame(left_, top_, cell_ * heads_, cell_ * heads_, "none");
    for (const int cluster : kind_.clusters) {
      const std::vector<int> points = kind_.tree.points_of(cluster);
      const auto first =
          static_cast<double>(std::find(order_.begin(), order_.end(), points[0]) - order_.begin());
      const double size = cell_ * static_cast<double>(points.size());
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"{}\" "
          "stroke-width=\"1.5\"/>\n",
          left_ + cell_ * first, top_ + cell_ * first, size, size, kOfCluster);
    }
    return out;
  }

  std::string names() const {
    std::string out = fmt::format("<g font-size=\"{:.1f}\">\n", letters_);
    for (size_t place = 0; place < order_.size(); ++place) {
      const double middle = row_of(place) + letters_ * 0.35;
      out += svg_text(left_ - kStrip - 5, middle, names_[place], "text-anchor=\"end\"");
      out += fmt::format("<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n",
                         middle - top_ + left_, top_ - 3, names_[place]);
    }
    return out + "</g>\n";
  }

  const SimilarKind& kind_;
  std::vector<int> order_;          // heads
  std::vector<std::string> names_;  // in this order
  std::vector<int> layers_;
  double heads_ = 0, cell_ = 0, letters_ = 0, names_width_ = 0, left_ = 0, top_ = 0, largest_ = 0;
};

}  // namespace

std::string draw_similar(const SimilarReport& similar) {
  std::string body;
  double width = 0, bottom = 0;
  for (const SimilarKind& kind : similar.kinds) {
    const KindPicture picture(kind, bottom + kEdge);
    body += picture.draw();
    width = std::max(width, picture.width());
    bottom = picture.bottom() + kEdge;
  }
  return svg_page(std::ceil(width), std::ceil(bottom)) + body + "</svg>\n";
}

}  // namespace mh
