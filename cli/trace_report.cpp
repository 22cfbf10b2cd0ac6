#include "cli/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cli/common.h"
#include "cli/error_line.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

constexpr int kLine = 80, kCell = 8, kIndent = 2, kLongestLabel = 10;
constexpr int64_t kMostRows = 8;
constexpr const char* kCut = "\u2026";

// As many decimals as fit beside the largest number.
std::string number(float x, double largest) {
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  if (largest >= 1e5 || (largest > 0 && largest < 1e-3)) return fmt::format("{:.0e}", x);
  return fmt::format("{:.{}f}", x, largest < 100 ? 3 : largest < 1000 ? 2 : largest < 1e4 ? 1 : 0);
}

std::string right(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ') + text;
}
std::string left(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

// The numbers below `size` that are shown; -1 where some are left out.
std::vector<int64_t> shown_of(int64_t size, int64_t most) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < size; ++i) {
    if (size > most && i == most - 2) {
      all.push_back(-1);
      i = size - 1;
    }
    all.push_back(i);
  }
  return all;
}

class Page {
 public:
  explicit Page(const TraceLabels& labels) : labels_(labels) {}

  std::string of(const TraceStep& step) const {
    const Tensor& value = step.value;
    const std::string shape = fmt::format("[{}, {}]  {}", value.rows(), value.cols(), step.owner);
    std::string text = fmt::format("{} = {}", step.name, step.formula);
    const int space = kLine - display_width(text) - display_width(shape);
    text += space >= 2 ? std::string(static_cast<size_t>(space), ' ') + shape
                       : "\n" + std::string(static_cast<size_t>(kLine - display_width(shape)), ' ') + shape;
    text += '\n';

    const std::vector<std::string>* rows = of_axis(step.rows);
    const std::vector<std::string>* columns = of_axis(step.columns);
    int margin = kIndent;
    if (rows != nullptr) {
      for (const std::string& label : *rows)
        margin =
            std::max(margin, kIndent + std::min(kLongestLabel, display_width(cell_text(label, kLine))) + 1);
    }
    const std::vector<int64_t> shown = shown_of(value.cols(), (kLine - margin) / kCell);
    if (columns != nullptr) {
      text += std::string(static_cast<size_t>(margin), ' ');
      for (const int64_t j : shown) text += cell(j < 0 ? kCut : (*columns)[static_cast<size_t>(j)]);
      text += '\n';
    }
    double largest = 0;
    for (int64_t i = 0; i < value.size(); ++i) {
      const double magnitude = std::abs(value.data()[i]);
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    for (const int64_t i : shown_of(value.rows(), kMostRows)) {
      const std::string label = i < 0             ? kCut
                                : rows != nullptr ? cell_text((*rows)[static_cast<size_t>(i)], kLongestLabel)
                                                  : "";
      text += std::string(kIndent, ' ') + left(label, margin - kIndent);
      for (const int64_t j : shown)
        text += cell(i < 0 || j < 0 ? (i < 0 ? "" : kCut) : number(value(i, j), largest));
      while (text.back() == ' ') text.pop_back();
      text += '\n';
    }
    return text;
  }

 private:
  static std::string cell(const std::string& text) { return right(cell_text(text, kCell - 1), kCell); }
  const std::vector<std::string>* of_axis(TraceAxis axis) const {
    const auto* labels = axis == TraceAxis::kQueries ? &labels_.queries
                         : axis == TraceAxis::kKeys  ? &labels_.keys
                                                     : nullptr;
    return labels != nullptr && !labels->empty() ? labels : nullptr;
  }

  const TraceLabels& labels_;
};

}  // namespace

std::string trace_text(const AttentionTrace& trace, const TraceLabels& labels) {
  const HeadGeometry& g = trace.geometry;
  std::string text =
      fmt::format("{}\n{}, d_key {}, d_value {}, scale {:.4g}{}\n", printable_line(trace.attention),
                  counted(g.heads, "head"), g.d_key, g.d_value, *g.scale,
                  g.soft_cap ? fmt::format(", soft cap {:.4g}", *g.soft_cap) : "");
  const Page page(labels);
  for (const TraceStep& step : trace.steps) text += "\n" + page.of(step);
  text += fmt::format(
      "\nThe layer itself, one product for all heads and the fused kernel, differs by\n"
      "{:.1e} at most in z, whose largest number is {:.3g}.\n",
      trace.difference, trace.magnitude);
  return text;
}

}  // namespace mh::cli
