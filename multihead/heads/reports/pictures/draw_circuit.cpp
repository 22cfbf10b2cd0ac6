#include "multihead/heads/reports/pictures/draw_circuit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/reports/pictures/svg.h"

namespace mh {
namespace {

constexpr double kCircuitEdge = 16, kCircuitLevel = 58, kBoxHeight = 22;
constexpr double kColumn = 44;                        // from one head to the next
constexpr double kBendOfRow = 22, kLongestBend = 90;  // how far aside an edge goes
constexpr double kLevelRoom = 190;                    // for the name of a level
constexpr double kCircuitWidest = 6;                  // of an edge, in pixels

/// "decoder.3.self_attention.5" -> "5"; "decoder.3.feed_forward" -> "feed_forward".
std::string box_name(const std::string& node) {
  return node.substr(node.rfind('.') + 1);
}
/// The number of a head, -1 of other nodes.
int head_of(const std::string& node) {
  const std::string last = box_name(node);
  return last.find_first_not_of("0123456789") == std::string::npos ? std::stoi(last) : -1;
}

/// "decoder.3.self_attention.5" -> "decoder.3.self_attention".
std::string level_name(const std::string& node) {
  return head_of(node) >= 0 ? node.substr(0, node.rfind('.')) : node;
}

struct Box {
  double x = 0, y = 0, width = 0;
  int row = 0;  // from the foot
};

const char* colour_of_input(CircuitInput input) {
  switch (input) {
    case CircuitInput::kQueries:
      return "#2563b0";
    case CircuitInput::kKeys:
      return "#b3362c";
    case CircuitInput::kValues:
      return "#2e7d43";
    case CircuitInput::kFeedForward:
    case CircuitInput::kStates:
      break;
  }
  return "#666";
}

/// The nodes of a circuit by level; of a group of heads only those that write into it, too.
std::map<int, std::vector<std::string>> nodes_of(const CircuitReport& circuit) {
  std::map<int, std::vector<std::string>> levels;
  const auto add = [&](int level, const std::string& node) {
    std::vector<std::string>& nodes = levels[level];
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  };
  for (const CircuitEdge& edge : circuit.edges) {
    add(edge.from_level, edge.from);
    if (edge.input == CircuitInput::kStates) add(edge.to_level, edge.to);
  }
  for (auto& [level, nodes] : levels) {
    std::sort(nodes.begin(), nodes.end(), [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
  }
  return levels;
}

}  // namespace

std::string draw_circuit(const CircuitReport& circuit) {
  if (circuit.edges.size() > kMostDrawnEdges) {
    throw UsageError(
        fmt::format("the circuit has {} edges, of which no picture is readable; a smaller share has fewer",
                    circuit.edges.size()));
  }
  const std::map<int, std::vector<std::string>> levels = nodes_of(circuit);
  const std::string title =
      fmt::format("A circuit of {} of {} edges that keeps {:.0f} % of the decision", circuit.edges.size(),
                  circuit.edges_of_model, 100 * circuit.faithfulness.mean);
  const double top = kCircuitEdge + 4 * kSvgTextLine;
  // Heads stand in the column of their number, feed-forward layers right of all heads, the ends of the model in the middle.
  int columns = 1;
  for (const auto& [level, nodes] : levels) {
    for (const std::string& node : nodes) columns = std::max(columns, head_of(node) + 1);
  }
  const double left = kCircuitEdge + kLevelRoom, lane = left + columns * kColumn + kColumn;
  const double right = lane + svg_text_width("feed_forward") + 16 + kLongestBend;
  std::map<std::string, Box> boxes;
  int row = 0;
  for (const auto& [level, nodes] : levels) {
    const double y = top + kCircuitLevel * static_cast<double>(std::ssize(levels) - 1 - row);
    for (const std::string& node : nodes) {
      const std::string name = box_name(node);
      Box box{.y = y, .width = svg_text_width(name) + 16, .row = row};
      box.x = head_of(node) >= 0       ? left + head_of(node) * kColumn
              : name == "feed_forward" ? lane
                                       : (left + lane - box.width) / 2;
      boxes[node] = box;
    }
    ++row;
  }
  const double bottom = top + kCircuitLevel * static_cast<double>(levels.size() - 1) + kBoxHeight;
  std::string out = svg_page(std::max(right, kCircuitEdge + 1.2 * svg_text_width(title)) + kCircuitEdge,
                             bottom + 2 * kCircuitEdge);
  out += svg_text(kCircuitEdge, kCircuitEdge + 14, title, "font-size=\"14\" font-weight=\"bold\"");
  out += svg_text(kCircuitEdge, kCircuitEdge + 14 + kSvgTextLine,
                  "Edges to queries blue, keys red, values green, others grey; against the answer dashed.",
                  "fill=\"#555\"");
  double strongest = 0;
  for (const CircuitEdge& edge : circuit.edges) strongest = std::max(strongest, std::abs(edge.score));
  for (const CircuitEdge& edge : circuit.edges) {
    const Box& from = boxes.at(edge.from);
    for (const std::string& reader : edge.readers) {
      const auto to = boxes.find(reader);
      if (to == boxes.end()) continue;  // a head of the group that writes into nothing of the circuit
      const double x1 = from.x + from.width / 2, x2 = to->second.x + to->second.width / 2;
      const double y1 = from.y, y2 = to->second.y + kBoxHeight, bend = (y1 - y2) / 2;
      // Those that pass other rows go around them: to queries and keys on the left, others on the right.
      const bool leftwards = edge.input == CircuitInput::kQueries || edge.input == CircuitInput::kKeys;
      const double aside =
          (leftwards ? -1 : 1) * std::min(kLongestBend, kBendOfRow * (to->second.row - from.row - 1));
      out += fmt::format(
          "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" "
          "stroke-width=\"{:.2f}\" stroke-opacity=\"0.6\"{}><title>{}</title></path>\n",
          x1, y1, x1 + aside, y1 - bend, x2 + aside, y2 + bend, x2, y2, colour_of_input(edge.input),
          0.5 + kCircuitWidest * std::abs(edge.score) / strongest,
          edge.score < 0 ? " stroke-dasharray=\"4 3\"" : "",
          xml_text(fmt::format("{} -> {}: {:.3f}", edge.from, edge.to, edge.score)));
    }
  }
  for (const auto& [level, nodes] : levels) {
    const Box& first = boxes.at(nodes[0]);
    out += svg_text(kCircuitEdge, first.y + kBoxHeight / 2 + 4, level_name(nodes[0]), "fill=\"#555\"");
    for (const std::string& node : nodes) {
      const Box& box = boxes.at(node);
      out += svg_frame(box.x, box.y, box.width, kBoxHeight, "white");
      out += svg_text(box.x + box.width / 2, box.y + kBoxHeight / 2 + 4, box_name(node),
                      "text-anchor=\"middle\"");
    }
  }
  return out + "</svg>\n";
}

}  // namespace mh
