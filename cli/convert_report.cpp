#include "cli/convert_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/common.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string conclusion(const ConvertReport& report) {
  switch (report.promise) {
    case Promise::kSame:
      return "The same function: the difference is rounding.\n";
    case Promise::kOther:
      return "Another function: the difference is what the conversion loses; train it on.\n";
    case Promise::kRounded:
      return "The same model with weights of fewer bits: the difference is what that costs.\n";
    case Promise::kAsMuted:
      break;
  }
  const std::string muted = fmt::format(
      "It is the given model with these heads muted, but for rounding: their outputs\n"
      "differ by at most {:.2e}.\n",
      report.from_muted->of_outputs().largest);
  if (is_rounding(report.difference))
    return "Without the removed heads nothing changes on what was compared.\n" + muted;
  return "Another function: the removed heads mattered as much as the difference says.\n" + muted;
}

struct NamedDifference {
  const char *key, *name;  // in JSON, in the table
  const Difference* found;
};
/// Of what there is.
std::vector<NamedDifference> named(const ModelDifference& difference) {
  std::vector<NamedDifference> all;
  if (difference.memory) all.push_back({"encoder", "encoder's output", &*difference.memory});
  all.push_back({"states", "last states", &difference.states});
  if (difference.logits) all.push_back({"logits", "logits", &*difference.logits});
  return all;
}

/// "weights before: Q4_1 66.4 MB in 210 tensors, Q8_0 30.1 MB in 1 tensor".
std::string weights_line(const char* when, const std::vector<StoredAlike>& all) {
  std::string text;
  for (const StoredAlike& alike : all) {
    text += fmt::format("{}{} {} in {}", text.empty() ? "" : ", ", alike.type, bytes_text(alike.bytes),
                        counted(alike.tensors, "tensor"));
  }
  return fmt::format("weights {}: {}\n", when, text);
}

template <class T>
Json json_of(const BeforeAfter<T>& both) {
  return {{"before", both.before}, {"after", both.after}};
}

}  // namespace

bool is_rounding(const ModelDifference& difference) {
  const std::vector<NamedDifference> all = named(difference);
  return std::all_of(all.begin(), all.end(), [](const NamedDifference& one) {
    return one.found->largest <= kRounding * one.found->magnitude;
  });
}

nlohmann::ordered_json difference_json(const ModelDifference& difference) {
  Json json;
  for (const auto& [key, name, found] : named(difference)) {
    json[key] = found->largest;
    json[fmt::format("{}_magnitude", key)] = found->magnitude;
  }
  return json;
}

std::string difference_lines(const ModelDifference& difference) {
  std::string text;
  for (const auto& [key, name, found] : named(difference))
    text += fmt::format("  {:<18}{:.2e}, of numbers up to {:.3g}\n", name, found->largest, found->magnitude);
  return text;
}

std::string in_words(const ConvertReport& report) {
  std::string text = fmt::format("{} -> {}\n{}\n\n{:<34}{:>16}{:>16}\n", report.model, report.out,
                                 report.conversion, "", "before", "after");
  for (const auto& [key, name, count] : report.costs) {
    text += fmt::format("{:<34}{:>16}{:>16}\n", name, grouped(count.before), grouped(count.after));
  }
  if (report.weights)
    text += weights_line("before", report.weights->before) + weights_line("after", report.weights->after);
  text += fmt::format("\nlargest difference from the given model on {}\n", report.compared_on);
  text += difference_lines(report.difference);
  if (const auto& mean = report.mean_log_probability)
    text += fmt::format("mean log-probability of a target token: {:.4f} before, {:.4f} after\n", mean->before,
                        mean->after);
  return text + conclusion(report);
}

std::string as_json(const ConvertReport& report) {
  Json json{{"model", report.model},
            {"out", report.out},
            {"conversion", report.conversion},
            {"exact", report.promise == Promise::kSame},
            {"on", report.compared_on}};
  json["difference"] = difference_json(report.difference);
  if (report.from_muted) json["difference_from_muted"] = difference_json(*report.from_muted);
  if (report.mean_log_probability) json["mean_log_probability"] = json_of(*report.mean_log_probability);
  if (report.weights) {
    json["weights"] = {{"before", stored_weights_json(report.weights->before)},
                       {"after", stored_weights_json(report.weights->after)}};
  }
  for (const Cost& cost : report.costs) json[cost.key] = json_of(cost.count);
  return json.dump(2) + "\n";
}

}  // namespace mh::cli
