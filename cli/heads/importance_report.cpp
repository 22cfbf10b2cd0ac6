#include "cli/heads/importance_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

const char* score_in_words(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::kTranslation:
      return "log p of the translation";
    case ScoreKind::kNextTokens:
      return "log p of each next token, summed";
    case ScoreKind::kMaskedWords:
      return "log p of the masked words";
    case ScoreKind::kLabels:
      return "logit of its label (of tokens the sum of theirs)";
    case ScoreKind::kVectors:
      break;
  }
  return "cosine of sentence vectors";
}

std::string measure_in_words(const ImportanceReport& report) {
  const char* const to =
      report.to == AblatedTo::kZero ? "multiplied by 0" : "replaced by its mean over the corpus";
  switch (report.measure) {
    case ImportanceMeasure::kGradient:
      return report.normalised
                 ? "the mean of |d score / d gate|, divided by the L2 norm over its attention's heads"
                 : "the mean of |d score / d gate| of the head";
    case ImportanceMeasure::kAblation:
      return fmt::format("what the score loses when the head's output is {}", to);
    case ImportanceMeasure::kAlone:
      break;
  }
  return fmt::format("what the score loses when the output of every other head of its attention is {}", to);
}

/// "0.0123 ±0.0009", or without an interval where it is not known.
std::string interval_cell(const Interval& interval) {
  const std::string half = std::isfinite(interval.half) ? fmt::format("{:.5f}", interval.half) : "?";
  return fmt::format("{:>9.5f} \u00b1{:<8}", interval.mean, half);
}

std::string bar(double share, int columns) {
  std::string text;
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * columns));
  for (int i = 0; i < full; ++i) text += "\u2588";
  return text;
}

}  // namespace

std::string importance_table(const ImportanceReport& report, size_t shown) {
  std::string text = what_was_read(report.read);
  text += wrapped(
      fmt::format("score of a sentence: {}; its mean: {:.4f}", score_in_words(report.kind), report.score));
  text += wrapped("importance: " + measure_in_words(report));
  double most = 0;
  size_t widest = 4;
  for (const HeadImportance& head : report.heads) {
    most = std::max(most, std::fabs(head.importance.mean));
    widest = std::max(widest, head.name.attention.size() + std::to_string(head.name.head).size() + 1);
  }
  std::string attention;
  text += fmt::format("\nrank  {:<{}}  importance\n", "head", widest);
  size_t lines = 0;
  for (const HeadImportance& head : report.heads) {
    if (report.within_attentions && head.name.attention != attention && lines > 0) text += "\n";
    attention = head.name.attention;
    const size_t place = report.within_attentions ? static_cast<size_t>(head.rank) : lines + 1;
    if (shown > 0 && place > shown) continue;
    ++lines;
    const int columns = std::max(0, 80 - static_cast<int>(widest) - 29);
    std::string line =
        fmt::format("{:>4}  {:<{}}  {}{}", head.rank, head.name.name(), widest,
                    interval_cell(head.importance), bar(most > 0 ? head.importance.mean / most : 0, columns));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (lines < report.heads.size())
    text += fmt::format("... {} less important heads; --top 0 shows all\n", report.heads.size() - lines);
  return text;
}

std::string curve_table(const PruningCurve& curve) {
  const bool vectors = curve.importance.kind == ScoreKind::kVectors;
  std::string text =
      "\n" + wrapped(fmt::format("heads muted from the last rank up; {} on {} other sentences:",
                                 vectors ? "cosine to the whole model's vector"
                                 : curve.importance.kind == ScoreKind::kLabels ? "logit of a label"
                                                                               : "score of a predicted token",
                                 grouped(curve.scored)));
  text += fmt::format("\n{:>5} {:>4}  {:>10}  {:<20}  {}\n", "muted", "%", "score", "     loss",
                      "loss of random orders");
  const auto heads = static_cast<double>(std::max<size_t>(1, curve.order.size()));
  for (const PruningPoint& point : curve.points) {
    std::string line = fmt::format("{:>5} {:>4.0f}  {:>10.4f}  {}", point.muted,
                                   100 * static_cast<double>(point.muted) / heads, point.score.mean,
                                   interval_cell(point.loss));
    line += "  " + interval_cell(point.random);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace mh::cli
