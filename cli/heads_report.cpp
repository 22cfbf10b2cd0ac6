#include "cli/heads_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "cli/common.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

std::string optional_number(const std::optional<double>& value, const char* none) {
  return value ? fmt::format("{:.2f}", *value) : none;
}

constexpr int kRelationWidth = 14;

std::string relation_row(const RelationScore& score) {
  const std::string relation = cell_text(score.relation, kRelationWidth - 1);
  const std::string space(static_cast<size_t>(kRelationWidth - display_width(relation)), ' ');
  return fmt::format("{}{}{:<30}{:>9.1f}{:>14} {:>6}{:>6}\n", relation, space,
                     score.found > 0 ? score.name() : "no head", 100 * score.score(),
                     fmt::format("{:.1f}", 100 * score.baseline()), fmt::format("({:+d})", score.offset),
                     score.support);
}

void relations_part(std::string& text, const std::vector<RelationScore>& scores, const char* title,
                    int64_t least_support) {
  const std::vector<RelationScore> best = best_heads(scores, least_support);
  for (const Direction direction : {Direction::kToHead, Direction::kToDependent, Direction::kReadByHead}) {
    std::string rows;
    for (const RelationScore& score : best) {
      if (score.direction == direction) rows += relation_row(score);
    }
    if (rows.empty()) continue;
    text += fmt::format("\n{}: {}\n{:<{}}{:<30}{:>9}{:>21}{:>6}\n", title, question_of(direction), "relation",
                        kRelationWidth, "best attention head", "correct %", "fixed offset %", "words");
    text += rows;
  }
}

bool of_decoder(const RelationScore& score) {
  return score.place.kind == AttentionKind::kDecoderSelf;
}

}  // namespace

int whole_percent(double share) {
  return static_cast<int>(std::lround(100 * share));
}

std::string word_offset(int offset) {
  return offset == 0 ? std::string("same place") : fmt::format("{:+d}", offset);
}

const char* question_of(Direction direction) {
  if (direction == Direction::kToHead) return "words that attend most to their syntactic head";
  if (direction == Direction::kToDependent) return "words that attend most to a dependent of this relation";
  return "words that get most attention from their syntactic head";
}

std::string heads_table(const HeadReport& report) {
  std::string text = counted(report.sentences, "sentence");
  if (report.targets == TargetsRead::kGreedy) text += ", targets by greedy search";
  if (report.targets == TargetsRead::kGiven) text += ", targets as given";
  text += "\n";
  std::string attention;
  for (const HeadFigures& head : report.heads) {
    if (head.attention != attention) {
      attention = head.attention;
      text += fmt::format("\n{}\n{:24}{:^35}{:>6}{:>12}\nhead  entropy   %  distance", attention, "",
                          "weight in % at offset", "on", "similarity");
      for (int o = -HeadFigures::kReach; o <= HeadFigures::kReach; ++o) {
        text += fmt::format("{:>5}", o == 0 ? std::string("0") : fmt::format("{:+}", o));
      }
      text += fmt::format("{:>6}{:>7}{:>5}\n",
                          head.place.kind == AttentionKind::kDecoderSelf ? "start" : "end", "cosine", "JSD");
    }
    text += fmt::format("{:>4}  {:>7.2f} {:>3}  {:>8.2f}", head.head, head.entropy,
                        whole_percent(head.entropy_share), head.distance);
    for (const double share : head.at_offset) text += fmt::format("{:>5}", whole_percent(share));
    text += fmt::format("{:>6}{:>7}{:>5}\n", whole_percent(head.on_end), optional_number(head.cosine, "-"),
                        optional_number(head.divergence, "-"));
  }
  return text + "\n" +
         wrapped(
             "entropy: of a query's weights, in nats, and in % of the largest possible; distance: mean "
             "|query - key|, in tokens; offset: key - query; end, start: the special token that ends the "
             "source or starts the decoder; similarity to the other heads of the layer: mean cosine and "
             "Jensen-Shannon divergence of the weights.");
}

std::string relations_table(const HeadReport& report, int64_t least_support) {
  std::vector<RelationScore> encoder, decoder;
  for (const RelationScore& score : report.relations)
    (of_decoder(score) ? decoder : encoder).push_back(score);
  std::string text;
  relations_part(text, encoder, "Encoder", least_support);
  relations_part(text, decoder, "Decoder", least_support);
  if (text.empty()) return text;
  return text + "\n" +
         wrapped(
             "correct: in % of the words; fixed offset: what attending always to the word at the best offset "
             "would get, e.g. (-1): the previous word; no head: none is ever correct.");
}

std::string aligners_table(const HeadReport& report, size_t shown) {
  if (report.aligners.empty()) return "";
  std::vector<AlignmentScore> best = report.aligners;
  std::stable_sort(best.begin(), best.end(), [](const AlignmentScore& a, const AlignmentScore& b) {
    return a.error_rate() < b.error_rate();
  });
  best.resize(std::min(best.size(), shown));
  std::string text = "\nCross-attention against the word alignments (in %)\n";
  text += fmt::format("{:<30}{:<18}{:>9}{:>12}{:>8}\n", "head", "when the decoder", "accuracy", "error rate",
                      "words");
  for (const AlignmentScore& score : best) {
    text += fmt::format("{:<30}{:<18}{:>9.1f}{:>12.1f}{:>8}\n", score.name(),
                        score.query == AlignedQuery::kPredicts ? "predicts the word" : "reads the word",
                        100 * score.accuracy(), 100 * score.error_rate(), score.support);
  }
  if (const auto& baseline = report.alignment_baseline) {
    text += fmt::format("{:<48}{:>9.1f}{:>12.1f}{:>8}\n",
                        fmt::format("best fixed offset: {}", word_offset(baseline->offset)),
                        100 * baseline->accuracy(), 100 * baseline->error_rate(), baseline->support);
  }
  return text + "\n" +
         wrapped(
             "accuracy: aligned words that attend most to a word they are aligned with; error rate: "
             "alignment error rate (AER), 0 is best.");
}

std::string head_picture(const Observation& sentence, const HeadName& head, const HeatMapOptions& options) {
  const AttentionKind kind = sentence.place(head.attention).kind;
  return fmt::format("{}.{}: {}\n", head.attention, head.head, what_attends(kind)) +
         heat_map(sentence.weights(head), sentence.query_labels(kind), sentence.key_labels(kind), options);
}

HeatMapOptions picture_options() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool colours = isatty(STDOUT_FILENO) == 1 && !(no_color && *no_color) &&
                       !(terminal && std::string_view(terminal) == "dumb");
  return {.cells = colours ? HeatMapOptions::Cells::kColours : HeatMapOptions::Cells::kShades};
}

}  // namespace mh::cli
