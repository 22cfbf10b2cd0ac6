#include "multihead/heads/report_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace mh {
namespace {

using Json = nlohmann::ordered_json;

const char* direction_key(Direction direction) {
  if (direction == Direction::kToHead) return "to_head";
  return direction == Direction::kToDependent ? "to_dependent" : "read_by_head";
}
const char* query_name(AlignedQuery query) {
  return query == AlignedQuery::kPredicts ? "predicts" : "reads";
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

Json json_of(const Observation& sentence, std::span<const HeadName> heads) {
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

std::string report_json(const HeadsReported& reported) {
  Json json;
  json["schema"] = kHeadsSchema;
  json["model"] = reported.model;
  if (reported.report != nullptr) json.update(json_of(*reported.report));
  if (reported.sentence != nullptr) json["text"] = json_of(*reported.sentence, reported.heads);
  constexpr auto kReplace = Json::error_handler_t::replace;  // a token may be part of a character
  return json.dump(1, ' ', false, kReplace) + "\n";
}

}  // namespace mh
