#include "multihead/heads/reports/importance_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

HeadsJson json_of_report(const ImportanceReport& report, const std::string& model) {
  HeadsJson json = json_of_model(model);
  add_read(json, report.read);
  json["score"] = name_of(report.kind, kScoreKindNames);
  json["predictions"] = report.predictions;
  json["mean_score"] = report.score;
  json["measure"] = name_of(report.measure, kImportanceMeasureNames);
  if (report.measure != ImportanceMeasure::kGradient) json["to"] = name_of(report.to, kAblatedToNames);
  json["normalised"] = report.normalised;
  json["within_attentions"] = report.within_attentions;
  json["heads"] = json_items(report.heads, [](const HeadImportance& head) -> HeadsJson {
    return {{"head", head.name.name()},
            {"rank", head.rank},
            {"importance", head.importance.mean},
            {"importance_half_width", half_or_null(head.importance)}};
  });
  return json;
}

}  // namespace

std::string importance_json(const ImportanceReport& report, const std::string& model) {
  return written(json_of_report(report, model));
}

std::string importance_json(const PruningCurve& curve, const std::string& model) {
  HeadsJson json = json_of_report(curve.importance, model);
  const auto json_of_point = [](const PruningPoint& point) -> HeadsJson {
    return {{"muted", point.muted},
            {"score", json_of(point.score)},
            {"loss", json_of(point.loss)},
            {"random_loss", json_of(point.random)}};
  };
  json["curve"] = {{"sentences", curve.scored},
                   {"order", json_items(curve.order, [](const HeadName& head) { return head.name(); })},
                   {"points", json_items(curve.points, json_of_point)}};
  return written(json);
}

}  // namespace mh
