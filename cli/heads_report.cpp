#include "cli/heads_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/common.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

using Json = nlohmann::ordered_json;

int whole_percent(double share) {
  return static_cast<int>(std::lround(100 * share));
}

std::string optional_number(const std::optional<double>& value, const char* none) {
  return value ? fmt::format("{:.2f}", *value) : none;
}

std::string word_offset(int offset) {
  return offset == 0 ? std::string("same place") : fmt::format("{:+d}", offset);
}

/// What a head is asked of each word.
const char* question(Direction direction) {
  if (direction == Direction::kToHead) return "words that attend most to their syntactic head";
  if (direction == Direction::kToDependent) return "words that attend most to a dependent of this relation";
  return "words that get most attention from their syntactic head";
}
const char* direction_key(Direction direction) {
  if (direction == Direction::kToHead) return "to_head";
  return direction == Direction::kToDependent ? "to_dependent" : "read_by_head";
}
const char* query_name(AlignedQuery query) {
  return query == AlignedQuery::kPredicts ? "predicts" : "reads";
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
    text += fmt::format("\n{}: {}\n{:<{}}{:<30}{:>9}{:>21}{:>6}\n", title, question(direction), "relation",
                        kRelationWidth, "best attention head", "correct %", "fixed offset %", "words");
    text += rows;
  }
}

bool of_decoder(const RelationScore& score) {
  return attention_place(score.attention).kind == AttentionKind::kDecoderSelf;
}

Json json_of(const HeadFigures& head) {
  Json json;
  json["head"] = head.name();
  json["queries"] = head.queries;
  json["entropy"] = head.entropy;
  json["entropy_share"] = head.entropy_share;
  json["distance"] = head.distance;
  for (size_t o = 0; o < HeadFigures::kOffsets; ++o) {
    const std::string offset = fmt::format("{:+d}", static_cast<int>(o) - HeadFigures::kReach);
    json["at_offset"][offset] = head.at_offset[o];
    json["most_at_offset"][offset] = head.most_at_offset[o];
  }
  json["on_end"] = head.on_end;
  json["cosine"] = head.cosine ? Json(*head.cosine) : Json();
  json["divergence"] = head.divergence ? Json(*head.divergence) : Json();
  return json;
}

Json json_rows(const double* numbers, int heads) {
  Json rows = Json::array();
  for (int h = 0; h < heads; ++h)
    rows.push_back(std::vector<double>(numbers + h * heads, numbers + (h + 1) * heads));
  return rows;
}

Json json_of(const AlignmentScore& score) {
  Json json;
  if (score.attention.empty()) {
    json["offset"] = score.offset;
  } else {
    json["head"] = score.name();
    json["query"] = query_name(score.query);
  }
  json["accuracy"] = score.accuracy();
  json["error_rate"] = score.error_rate();
  json["support"] = score.support;
  return json;
}

Json json_of(const HeadReport& report) {
  Json json;
  json["sentences"] = report.sentences;
  if (report.targets != TargetsRead::kNone)
    json["targets"] = report.targets == TargetsRead::kGreedy ? "greedy translations" : "given";
  json["heads"] = Json::array();
  for (const HeadFigures& head : report.heads) json["heads"].push_back(json_of(head));
  json["similarities"] = Json::array();
  for (const HeadSimilarity& similarity : report.similarities) {
    json["similarities"].push_back(
        {{"attention", similarity.attention},
         {"cosine", json_rows(similarity.cosine.data(), similarity.heads)},
         {"divergence", json_rows(similarity.divergence.data(), similarity.heads)}});
  }
  if (!report.relations.empty()) json["relations"] = Json::array();
  for (const RelationScore& score : report.relations) {
    json["relations"].push_back({{"head", score.name()},
                                 {"relation", score.relation},
                                 {"direction", direction_key(score.direction)},
                                 {"score", score.score()},
                                 {"baseline", score.baseline()},
                                 {"baseline_offset", score.offset},
                                 {"support", score.support}});
  }
  if (!report.aligners.empty()) json["alignment"] = Json::array();
  for (const AlignmentScore& score : report.aligners) json["alignment"].push_back(json_of(score));
  if (report.alignment_baseline) json["alignment_baseline"] = json_of(*report.alignment_baseline);
  return json;
}

Json json_of(const Observation& sentence, const std::vector<HeadName>& heads) {
  Json json;
  json["source_tokens"] = sentence.source.tokens;
  json["target_tokens"] = sentence.target.tokens;
  json["predicted_tokens"] = sentence.predicted.tokens;
  json["translation"] = sentence.translation;
  json["weights"] = Json::object();
  for (const HeadName& head : heads) {
    const ConstMatrixView weights = sentence.weights(head);
    Json rows = Json::array();
    for (int64_t i = 0; i < weights.rows; ++i) {
      rows.push_back(std::vector<float>(weights.row(i), weights.row(i) + weights.cols));
    }
    json["weights"][fmt::format("{}.{}", head.attention, head.head)] = std::move(rows);
  }
  return json;
}

}  // namespace

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
                          attention_place(attention).kind == AttentionKind::kDecoderSelf ? "start" : "end",
                          "cosine", "JSD");
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
  const AttentionKind kind = attention_place(head.attention).kind;
  return fmt::format("{}.{}: {}\n", head.attention, head.head, what_attends(kind)) +
         heat_map(sentence.weights(head), sentence.query_labels(kind), sentence.key_labels(kind), options);
}

std::string heads_json(const std::string& model, const HeadReport* report, const Observation* sentence,
                       const std::vector<HeadName>& heads) {
  Json json;
  json["model"] = model;
  if (report) json.update(json_of(*report));
  if (sentence) json["text"] = json_of(*sentence, heads);
  return json.dump(1) + "\n";
}

HeatMapOptions picture_options() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool colours = isatty(STDOUT_FILENO) == 1 && !(no_color && *no_color) &&
                       !(terminal && std::string_view(terminal) == "dumb");
  return {.cells = colours ? HeatMapOptions::Cells::kColours : HeatMapOptions::Cells::kShades};
}

}  // namespace mh::cli
