#include "cli/heads/attribution_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/common.h"
#include "cli/error_line.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

constexpr int kLabelColumns = 12;

std::string padded(std::string text, int columns) {
  text.append(static_cast<size_t>(std::max(0, columns - display_width(text))), ' ');
  return text;
}

/// As many digits as 8 columns have room for, and a space.
std::string number_of(double score) {
  const double size = std::abs(score);
  if (size >= 1000) return fmt::format("{:8.0e}", score);
  return fmt::format("{:8.{}f}", score, size >= 100 ? 2 : size >= 10 ? 3 : 4);
}

std::string what_is_explained(const AttributionReport& found) {
  if (!found.label.empty()) {
    const std::string of_token = found.position >= 0 ? fmt::format(" of token {}", found.position) : "";
    return fmt::format("The logit of {}{}: {:.4f}; {:.4f} when every token read is {}.",
                       printable_line(found.label), of_token, found.score, found.replaced_score,
                       found.source_replacement);
  }
  if (found.explained.empty())
    return fmt::format("The cosine with \"{}\": {:.4f}; {:.4f} when every token read is {}.", found.second,
                       found.score, found.replaced_score, found.source_replacement);
  std::string text =
      fmt::format("log p of token {}, '{}': {:.4f}; {:.4f} when every token read is {}.", found.position,
                  found.explained, found.score, found.replaced_score, found.source_replacement);
  if (!found.target_replacement.empty() && found.target_replacement != found.source_replacement)
    text += fmt::format(" Target tokens become {}.", found.target_replacement);
  return text;
}

/// "0.1234 +- 0.0123"
std::string gain_cell(const Interval& interval) {
  return std::isfinite(interval.half) ? fmt::format("{:.4f} ± {:.4f}", interval.mean, interval.half)
                                      : fmt::format("{:.4f} ± ?", interval.mean);
}

}  // namespace

const char* short_name(AttributionMethod method) {
  switch (method) {
    case AttributionMethod::kAttention:
      return "attn";
    case AttributionMethod::kNormWeighted:
      return "norm";
    case AttributionMethod::kRollout:
      return "rollout";
    case AttributionMethod::kRelevance:
      return "relev";
    case AttributionMethod::kFlow:
      return "flow";
    case AttributionMethod::kGradientTimesInput:
      return "grad*x";
    case AttributionMethod::kIntegratedGradients:
      return "integr";
    case AttributionMethod::kValueZeroing:
      return "zeroing";
  }
  return "";
}

std::string attribution_table(const AttributionReport& found) {
  std::string text;
  if (!found.translation.empty()) text += wrapped("translation: " + found.translation, "", 80, "  ");
  text += wrapped(what_is_explained(found)) + "\n";
  std::string line = padded("   token", 4 + kLabelColumns);
  for (const MethodScores& method : found.methods) line += fmt::format("{:>8}", short_name(method.method));
  text += line + "\n";
  for (size_t i = 0; i < found.tokens.size(); ++i) {
    const ReadToken& token = found.tokens[i];
    if (i > 0 && token.side != found.tokens[i - 1].side) text += "   target\n";
    if (i > 0 && token.of_pair && !found.tokens[i - 1].of_pair) text += "   second text\n";
    line = padded(
        fmt::format("{:>3} {}", i, cell_text(token.label, kLabelColumns - 2)) + (token.kept ? "*" : ""),
        4 + kLabelColumns);
    for (const MethodScores& method : found.methods) line += number_of(method.scores[i]);
    text += line + "\n";
  }
  std::string below = "* never replaced.";
  if (found.completeness_error) {
    below += fmt::format(" integr sums to the first score less the second, but for {:.1e}.",
                         *found.completeness_error);
    if (std::abs(*found.completeness_error) > 0.05 * std::abs(found.score - found.replaced_score))
      below += " That is much: give more --steps, or do not trust it.";
  }
  return text + "\n" +
         wrapped(
             below +
             " attn, norm: the last layer; rollout, flow, relev, zeroing: all layers; grad*x, integr: parts "
             "of the "
             "score, negative where the token lowers it. They disagree: -i measures which one to trust "
             "(docs/heads/attribution.md).");
}

std::string faithfulness_table(const Faithfulness& found) {
  std::string text = counted(found.sentences, "sentence");
  if (found.left_out > 0) text += fmt::format(", {} left out", counted(found.left_out, "line"));
  text += fmt::format(". Score {:.4f}; {:.4f} when every token read is {}", found.score.mean,
                      found.replaced_score.mean, found.source_replacement);
  if (!found.target_replacement.empty() && found.target_replacement != found.source_replacement)
    text += fmt::format(" or {}", found.target_replacement);
  text = wrapped(text + ".") + fmt::format("\n{:<21}{:>9}{:>20}{:>10}{:>20}\n", "", "deletion",
                                           "gain on random", "insertion", "gain on random");
  for (const MethodFaithfulness& one : found.methods) {
    text +=
        fmt::format("{:<21}{:>9.4f}", one.method ? name_of(*one.method, kAttributionMethodNames) : "random",
                    one.deletion.mean);
    text +=
        fmt::format("{:>20}{:>10.4f}", one.method ? gain_cell(one.deletion_gain) : "", one.insertion.mean);
    text += one.method ? fmt::format("{:>20}\n", gain_cell(one.insertion_gain)) : "\n";
  }
  return text + "\n" +
         wrapped(
             "deletion: the mean score while the tokens with the largest attributions are replaced first, "
             "lower is "
             "better; insertion: while they come back first, higher is better. gain: how much better than "
             "random "
             "orders of the same sentences, with its 95 % interval; one that holds 0 is no better than "
             "chance. "
             "docs/heads/attribution.md.");
}

}  // namespace mh::cli
