#include "multihead/heads/reports/report_json.h"

#include "multihead/heads/reports/json_parts.h"
#include "multihead/kernels/product_kernels.h"

namespace mh {
namespace {

using Json = HeadsJson;

Json json_of(const HeadReport& report) {
  Json json;
  add_read(json, {report.sentences, report.targets});
  const auto part = [](const auto& figures) { return json_of(figures); };
  json["heads"] = json_items(report.heads, part);
  json["similarities"] = json_items(report.similarities, [](const HeadSimilarity& similarity) -> Json {
    return {{"attention", similarity.attention},
            {"cosine", json_rows(similarity.cosine, static_cast<size_t>(similarity.heads))},
            {"divergence", json_rows(similarity.divergence, static_cast<size_t>(similarity.heads))}};
  });
  if (!report.relations.empty()) json["relations"] = json_items(report.relations, part);
  if (!report.aligners.empty()) json["alignment"] = json_items(report.aligners, part);
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
  json["precision"] = precision_name(reported.precision);
  json["kernels"] = json_of_kernels(reported.precision);
  if (reported.report != nullptr) json.update(json_of(*reported.report));
  if (reported.sentence != nullptr) json["text"] = json_of(*reported.sentence, reported.heads);
  return written(json);
}

}  // namespace mh
