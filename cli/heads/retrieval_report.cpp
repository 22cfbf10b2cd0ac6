#include "cli/heads/retrieval_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "cli/error_line.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

constexpr size_t kHeadsOfRetrieval = 15;  // lines of a table
constexpr int kHeadColumns = 32;

/// " +0.1234 ± 0.0123"; without an interval where it is not known.
std::string retrieval_figure(const Interval& figure) {
  return fmt::format("{:>9.4f}", figure.mean) +
         (std::isfinite(figure.half) ? fmt::format(" ± {:<7.4f}", figure.half) : std::string(10, ' '));
}

template <class One, class Value>
std::vector<const One*> largest_first(const std::vector<One>& all, const Value& value) {
  std::vector<const One*> sorted;
  for (const One& one : all) sorted.push_back(&one);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const One* a, const One* b) { return value(*a) > value(*b); });
  sorted.resize(std::min(sorted.size(), kHeadsOfRetrieval));
  return sorted;
}

std::string answers_table(const RetrievalReport& found) {
  std::set<int32_t> lengths;
  std::set<double> depths;
  for (const RetrievalTrial& trial : found.trials) {
    lengths.insert(trial.length);
    depths.insert(trial.depth);
  }
  std::string text = fmt::format("{:>7}{:>8}{:>8}{:>11}\n", "length", "depth", "exact", "log p");
  for (const int32_t length : lengths) {
    for (const double depth : depths)
      text += fmt::format("{:>7}{:>8.3g}{:>8.2f}{:>11.4f}\n", length, depth, found.exact(length, depth),
                          found.log_probability(length, depth));
  }
  return text;
}

std::string copying_heads(const RetrievalReport& found) {
  std::string text = fmt::format("{:<{}}{:>9}{:>19}\n", "head", kHeadColumns, "score", "weight");
  for (const RetrievalHead* head :
       largest_first(found.heads, [](const RetrievalHead& one) { return one.score.mean; })) {
    if (head->score.mean == 0) break;
    text += fmt::format("{:<{}}", head->head.name(), kHeadColumns) + retrieval_figure(head->score) +
            retrieval_figure(head->weight);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

/// "decoder.3.self_attention.0 to 2": heads of a group.
std::string unit_name(const RetrievalNeed& need) {
  std::string name = need.heads[0].name();
  return need.heads.size() == 1 ? name : name + fmt::format(" to {}", need.heads.back().head);
}

std::string limited_heads(const RetrievalReport& found) {
  std::string text = fmt::format("{:<{}}{:>9}", "limited", kHeadColumns, "fall");
  if (found.text_loss) text += fmt::format("{:>19}", "loss rise");
  text += "\n";
  for (const RetrievalNeed* need :
       largest_first(found.needs, [](const RetrievalNeed& one) { return one.fall.mean; })) {
    text += fmt::format("{:<{}}", unit_name(*need), kHeadColumns) + retrieval_figure(need->fall);
    if (need->loss_rise) text += retrieval_figure(*need->loss_rise);
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string retrieval_legend(const RetrievalReport& found) {
  std::string legend =
      "exact: share of texts whose answer the model says, token by token; log p: of the answer. score: share "
      "of the answer's tokens that the head copies, by its largest weight; weight: what it gives to them. ";
  if (!found.needs.empty()) {
    legend += "fall: of log p while the head sees the first keys and a window alone; ";
    if (found.text_loss)
      legend +=
          fmt::format("loss rise: of the filler, whose loss is {:.4f} nats a token; ", *found.text_loss);
  }
  return wrapped(legend + "±: 95 % interval. docs/heads/retrieval.md says what that means.");
}

}  // namespace

std::string retrieval_tables(const RetrievalReport& found) {
  std::string text = answers_table(found) + "\n" + copying_heads(found);
  if (!found.needs.empty()) text += "\n" + limited_heads(found);
  return text + "\n" + retrieval_legend(found);
}

}  // namespace mh::cli
