#include "multihead/heads/reports/report_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

using Json = HeadsJson;

Json json_rows(const double* numbers, int heads) {
  Json rows = Json::array();
  for (int h = 0; h < heads; ++h)
    rows.push_back(std::vector<double>(numbers + h * heads, numbers + (h + 1) * heads));
  return rows;
}

Json json_of(const HeadReport& report) {
  Json json;
  add_read(json, {report.sentences, report.targets});
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
  for (const RelationScore& score : report.relations) json["relations"].push_back(json_of(score));
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
    json["weights"][head.name()] = std::move(rows);
  }
  return json;
}

}  // namespace

std::string report_json(const HeadsReported& reported) {
  Json json = json_of_model(reported.model);
  if (reported.report != nullptr) json.update(json_of(*reported.report));
  if (reported.sentence != nullptr) json["text"] = json_of(*reported.sentence, reported.heads);
  return written(json);
}

}  // namespace mh
