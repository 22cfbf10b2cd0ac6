#include "cli/heads/contributions_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "cli/error_line.h"
#include "cli/heads/figure_table.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

/// In 6 columns.
std::string part_cell(double part) {
  const double size = std::abs(part);
  if (size >= 1e6) return fmt::format("{:.0e}", part);
  return fmt::format("{:.{}f}", part, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

double mean_of(const Contribution& part) {
  return part.sum;
}
double mean_of(const MeanContribution& part) {
  return part.sum.mean;
}

std::string_view unit_of(ContributionScore kind) {
  return kind == ContributionScore::kCosine ? "cosine" : "logit";
}

std::string answer_in_words(const PatchAnswer& answer, ContributionScore kind) {
  constexpr int kLongest = 60;
  std::string text = printable_line(cell_text(answer.text, kLongest));
  if (kind == ContributionScore::kLabel) return text;
  return answer.token && answer.label != answer.text
             ? fmt::format("'{}' ({})", text, printable_line(cell_text(answer.label, kLongest)))
             : fmt::format("'{}'", text);
}

std::string what_is_summed(const ContributionReport& found) {
  if (!found.scores.empty())
    return fmt::format("The logits of all {} tokens that follow another one, summed{}",
                       found.scores.size() - 1, found.centred ? ", each less the mean of all logits" : "");
  std::string text =
      fmt::format("The {} {}", found.kind == ContributionScore::kCosine ? "cosine with" : "logit of",
                  answer_in_words(*found.asked.answer, found.kind));
  if (found.asked.wrong) text += " less that of " + answer_in_words(*found.asked.wrong, found.kind);
  if (found.asked.of_token)
    text += fmt::format(" of token {}, '{}'", found.asked.predicting,
                        printable_line(found.asked.text.labels[static_cast<size_t>(found.asked.predicting)]));
  if (found.centred) text += ", less the mean of all logits";
  return text;
}

/// A line for each kind of part.
template <class Parts>
std::string kinds_table(const Parts& parts, double score) {
  constexpr std::pair<ContributionKind, const char*> kKinds[] = {
      {ContributionKind::kEmbeddings, "embeddings"},
      {ContributionKind::kHead, "heads"},
      {ContributionKind::kFeedForward, "feed-forward layers"},
      {ContributionKind::kBiases, "biases"},
      {ContributionKind::kOutput, "output layer's own"}};
  std::string text;
  for (const auto& [kind, name] : kKinds) {
    double sum = 0;
    for (const auto& part : parts) sum += part.kind == kind ? mean_of(part) : 0;
    text += fmt::format("  {:<22}{:>12.4f}\n", name, sum);
  }
  return text + fmt::format("  {:<22}{:>12.4f}\n", "together", score);
}

/// Layers down; heads and the feed-forward layer across: a table for each kind of attention.
template <class Parts>
std::string layers_tables(const Parts& parts, std::string_view unit) {
  struct Table {
    size_t heads = 0;
    std::map<int, std::map<int, double>> layers = {};
  };
  std::map<std::string, Table> tables;
  std::map<int, double> feed_forward;
  for (const auto& part : parts) {
    if (part.kind == ContributionKind::kFeedForward) feed_forward[part.layer] = mean_of(part);
    if (!part.head) continue;
    const std::string& attention = part.head->attention;
    Table& table = tables[attention.substr(attention.rfind('.') + 1)];
    table.heads = std::max(table.heads, static_cast<size_t>(part.head->head) + 1);
    table.layers[part.layer][part.head->head] = mean_of(part);
  }
  std::string text;
  for (const char* kind : {"self_attention", "cross_attention"}) {
    if (!tables.contains(kind)) continue;
    const Table& table = tables.at(kind);
    const bool self = std::string_view(kind) == "self_attention";
    FigureTable figures{.corner = "layer"};
    for (size_t head = 0; head < table.heads; ++head) figures.columns.push_back(std::to_string(head));
    if (self) figures.columns.emplace_back("ff");
    for (const auto& [layer, heads] : table.layers) {
      figures.rows.push_back(fmt::format("{:>5}", layer));
      auto& cells = figures.cells.emplace_back(figures.columns.size());
      for (const auto& [head, sum] : heads) cells[static_cast<size_t>(head)] = sum;
      if (self && feed_forward.contains(layer)) cells.back() = feed_forward.at(layer);
    }
    text += fmt::format("\n{}, {} by head{}\n", self ? "self-attention" : "cross-attention", unit,
                        self ? "; ff: the feed-forward layer" : "");
    text += figures.text(part_cell, 7);
  }
  return text;
}

/// The three tokens that count for most, "' France' 0.91, ' of' 0.03".
std::string sources_in_words(const ContributionReport& found, const Contribution& part, int columns) {
  constexpr size_t kShown = 3;
  const std::vector<std::string>& labels = found.source_labels(part);
  std::vector<size_t> order(part.sources.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(part.sources[a]) > std::abs(part.sources[b]); });
  std::string text;
  for (size_t i = 0; i < std::min(kShown, order.size()); ++i) {
    const std::string one =
        fmt::format("{}'{}' {:.3f}", text.empty() ? "" : ", ",
                    printable_line(cell_text(labels[order[i]], 12)), part.sources[order[i]]);
    if (display_width(text) + display_width(one) > columns) break;
    text += one;
  }
  return text;
}

constexpr int kNameColumns = 32;

}  // namespace

std::string contributions_tables(const ContributionReport& found, int64_t strongest) {
  std::string text = wrapped(fmt::format("{}: {:.4f}", what_is_summed(found), found.score));
  text += kinds_table(found.parts, found.sum);
  text +=
      fmt::format("  off by {:.1e} of the parts' absolute values, {:.4f}\n", found.error(), found.magnitude);
  text += layers_tables(found.parts, unit_of(found.kind));
  const std::vector<const Contribution*> most = found.strongest(static_cast<size_t>(strongest));
  if (most.empty()) return text;
  const bool sources =
      std::any_of(most.begin(), most.end(), [](const Contribution* part) { return !part->sources.empty(); });
  text += fmt::format("\n{:<{}}{:>9}{}\n", "strongest", kNameColumns, unit_of(found.kind),
                      sources ? "  through the tokens that it reads" : "");
  for (const Contribution* part : most) {
    text += fmt::format("{:<{}}{:>9.4f}", part->name, kNameColumns, part->sum);
    if (!part->sources.empty()) text += "  " + sources_in_words(found, *part, 80 - kNameColumns - 11);
    text += "\n";
  }
  return text;
}

std::string contributions_tables(const MeanContributions& found, int64_t strongest) {
  std::string text = wrapped(fmt::format(
      "The mean {} of {} {}{}: {}", unit_of(found.kind), found.texts, found.texts == 1 ? "text" : "texts",
      found.every_position ? ", of each its mean over all tokens that follow another one" : "",
      std::isfinite(found.score.half) ? fmt::format("{:.4f} ± {:.4f}", found.score.mean, found.score.half)
                                      : fmt::format("{:.4f}", found.score.mean)));
  text += kinds_table(found.parts, found.score.mean);
  text += fmt::format("  off by {:.1e} of the parts' absolute values at most\n", found.largest_error);
  text += layers_tables(found.parts, unit_of(found.kind));
  const std::vector<const MeanContribution*> most = found.strongest(static_cast<size_t>(strongest));
  if (most.empty()) return text;
  text += fmt::format("\n{:<{}}{:>9}  95 % interval\n", "strongest", kNameColumns, "mean");
  for (const MeanContribution* part : most) {
    text += fmt::format("{:<{}}{:>9.4f}", part->name, kNameColumns, part->sum.mean);
    if (std::isfinite(part->sum.half)) text += fmt::format("  ± {:.4f}", part->sum.half);
    text += "\n";
  }
  return text;
}

}  // namespace mh::cli
