#include "cli/heads/prune_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

using Json = nlohmann::ordered_json;

BeforeAfter<int64_t> heads_of(const PrunePlan& plan) {
  return {plan.heads(), plan.heads() - plan.removed()};
}

BeforeAfter<int64_t> key_heads_of(const PrunePlan& plan) {
  BeforeAfter<int64_t> found;
  for (const PrunedAttention& one : plan.attentions) {
    found.before += one.key_heads;
    found.after += one.key_heads - one.key_heads_removed;
  }
  return found;
}

std::string change(double before, double after) {
  return fmt::format("{:>9.1f} %", before > 0 ? 100 * (after - before) / before : 0.0);
}

std::string count_row(const char* what, const BeforeAfter<int64_t>& count) {
  return fmt::format("{:<28}{:>16}{:>16}{}\n", what, grouped(count.before), grouped(count.after),
                     change(static_cast<double>(count.before), static_cast<double>(count.after)));
}

Json counts(const BeforeAfter<int64_t>& count) {
  return {{"before", count.before}, {"after", count.after}};
}

/// "1, 5, 11" in lines that fit.
std::string listed(const std::vector<int>& heads) {
  constexpr size_t kMost = 12;
  if (heads.size() <= kMost) return fmt::format("{}", fmt::join(heads, ", "));
  return fmt::format("{}, ... ({})", fmt::join(heads.begin(), heads.begin() + kMost, ", "), heads.size());
}

const char* format_name(SavedFormat::Kind kind) {
  switch (kind) {
    case SavedFormat::Kind::kFamily:
      return "family";
    case SavedFormat::Kind::kPrunedHeads:
      return "pruned_heads";
    case SavedFormat::Kind::kOwn:
      break;
  }
  return "multihead_heads";
}

}  // namespace

std::string prune_table(const PruneReport& report) {
  std::string text = fmt::format("{} -> {}\n\n{:<28}{:>16}{:>16}{:>11}\n", report.model, report.out, "",
                                 "before", "after", "change");
  text += count_row("heads", heads_of(report.plan));
  text += count_row("heads of keys and values", key_heads_of(report.plan));
  text += count_row("parameters", report.parameters);
  text += count_row("bytes of weight files", report.weight_bytes);
  text += fmt::format("{:<28}{:>16.1f}{:>16.1f}{}\n", fmt::format("ms for {} tokens", report.seconds.tokens),
                      report.seconds.first * 1e3, report.seconds.second * 1e3,
                      change(report.seconds.first, report.seconds.second));
  text += "\n";
  for (const PrunedAttention& one : report.plan.attentions) {
    if (one.removed.empty() && one.silent.empty()) continue;
    text += fmt::format("{}: {} of {} heads stay\n", one.attention, one.heads - std::ssize(one.removed),
                        one.heads);
    if (!one.removed.empty()) text += fmt::format("  gone    {}\n", listed(one.removed));
    if (!one.silent.empty()) text += fmt::format("  silent  {}\n", listed(one.silent));
  }
  if (report.plan.silent() > 0) text += "A silent head has to stay, and its rows of W^O are 0.\n";
  text += fmt::format("\nlargest difference on {}\nfrom the given model with these heads muted\n{}",
                      report.compared_on, difference_lines(report.from_muted));
  return text + fmt::format("and from the given model itself\n{}", difference_lines(report.difference));
}

std::string prune_json(const PruneReport& report) {
  Json json{{"schema", 1},
            {"model", report.model},
            {"out", report.out},
            {"format", format_name(report.format.kind)},
            {"dtype", report.type == NumberType::kFloat32 ? "float32" : "bfloat16"},
            {"heads", counts(heads_of(report.plan))},
            {"silent", report.plan.silent()},
            {"key_heads", counts(key_heads_of(report.plan))},
            {"parameters", counts(report.parameters)},
            {"weight_bytes", counts(report.weight_bytes)},
            {"tokens", report.seconds.tokens},
            {"seconds", {{"before", report.seconds.first}, {"after", report.seconds.second}}},
            {"on", report.compared_on},
            {"difference_from_muted", difference_json(report.from_muted)},
            {"difference", difference_json(report.difference)}};
  if (!report.format.why.empty()) json["why"] = report.format.why;
  json["attentions"] = Json::array();
  for (const PrunedAttention& one : report.plan.attentions) {
    json["attentions"].push_back({{"attention", one.attention},
                                  {"heads", one.heads},
                                  {"key_heads", one.key_heads},
                                  {"removed", one.removed},
                                  {"silent", one.silent},
                                  {"key_heads_removed", one.key_heads_removed}});
  }
  return json.dump(2) + "\n";
}

}  // namespace mh::cli
