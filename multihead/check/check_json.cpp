#include "multihead/check/check_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace mh {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no word for what is not finite: text.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "nan" : "infinite");
}

void add_runs(Json& json, const RunDifferences& differences) {
  for (const auto& [name, run] : std::vector(EnumNames<CheckedRun>(kCheckedRunNames))) {
    const std::optional<double>& one = differences[static_cast<size_t>(run)];
    json[std::string(name)] = one ? number(*one) : Json(nullptr);
  }
}

Json json_of(const SiteDifference& site) {
  Json json = {{"site", site.site}};
  add_runs(json, site.differences);
  json["text"] = site.text;
  json["row"] = site.row;
  return json;
}

Json json_of(const GreedyDifference& greedy) {
  return {{"text", greedy.text},
          {"token", greedy.token},
          {"here", greedy.here ? Json(*greedy.here) : Json(nullptr)},
          {"there", greedy.there},
          {"margin", number(greedy.margin)}};
}

}  // namespace

std::string check_json(const CheckReport& report, const std::string& model) {
  Json json = {{"schema", 1},
               {"verb", "check"},
               {"model", model},
               {"model_type", report.model_type},
               {"right", report.right()},
               {"first", report.first ? json_of(*report.first) : Json(nullptr)},
               {"threads_agree", report.threads_agree},
               {"greedy",
                {{"texts", report.greedy_texts},
                 {"ties", report.greedy_ties},
                 {"first", report.greedy ? json_of(*report.greedy) : Json(nullptr)}}},
               {"versions",
                {{"multihead", report.multihead},
                 {"python", report.python},
                 {"torch", report.torch},
                 {"transformers", report.transformers},
                 {"numpy", report.numpy}}},
               {"executable", report.executable},
               {"class", report.transformers_class},
               {"weights_sha256", report.weights_hash},
               {"options", Json::parse(to_json_line(report.options))}};
  json["texts"] = Json::array();
  for (size_t i = 0; i < report.texts.ids.size(); ++i) {
    Json text = {{"ids", report.texts.ids[i]}};
    if (!report.texts.lines.empty()) text["text"] = report.texts.lines[i];
    if (!report.texts.targets.empty()) text["target_ids"] = report.texts.targets[i];
    json["texts"].push_back(std::move(text));
  }
  json["parts"] = Json::array();
  for (const PartDifference& part : report.parts) {
    Json one = {{"part", part.part}};
    add_runs(one, part.differences);
    json["parts"].push_back(std::move(one));
  }
  json["sites"] = Json::array();
  for (const SiteDifference& site : report.sites) json["sites"].push_back(json_of(site));
  json["not_compared"] = report.not_compared;
  json["remarks"] = report.remarks;
  return json.dump(1) + "\n";
}

}  // namespace mh
