#include "multihead/heads/reports/measures_json.h"

#include <cmath>

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

/// Half a width that is not finite is null: one fold alone.
HeadsJson with_intervals(const RelationScore& score) {
  HeadsJson json = json_of(score);
  json["score_half_width"] = half_or_null(score.interval);
  json["gain_half_width"] = half_or_null(score.gain_interval);
  return json;
}

HeadsJson list_of(const std::vector<RelationScore>& scores) {
  HeadsJson all = HeadsJson::array();
  for (const RelationScore& score : scores) all.push_back(with_intervals(score));
  return all;
}

HeadsJson json_of(const ProbeScore& probe) {
  HeadsJson json{{"score", probe.score()}, {"words", probe.words}};
  json["heads"] = HeadsJson::array();
  for (const DependencyProbe::Head& head : probe.heads)
    json["heads"].push_back({{"head", head.name}, {"reads", head.reads}, {"read", head.read}});
  return json;
}

}  // namespace

std::string stats_json(const StatsReport& report, const std::string& model) {
  HeadsJson json = json_of_model(model);
  add_read(json, report.read);
  json["heads"] = HeadsJson::array();
  for (const HeadStats& head : report.heads) {
    HeadsJson& of = json["heads"].emplace_back(json_of(head.figures));
    of.erase("cosine");
    of.erase("divergence");
    of["on_rarest"] = json_or_null(head.roles.on_rarest);
    of["rarest_by_chance"] = json_or_null(head.roles.rarest_by_chance);
    for (size_t p = 0; p < kAttentionPatterns; ++p)
      of["patterns"][std::string(name_of(static_cast<AttentionPattern>(p)))] = head.roles.patterns[p];
    const auto pattern = head.roles.pattern();
    of["pattern"] = pattern ? HeadsJson(name_of(*pattern)) : HeadsJson();
    if (head.repeated) {
      of["previous_token"] = head.repeated->previous_token;
      of["induction"] = head.repeated->induction;
    }
    const auto role = head.role();
    of["role"] = role ? HeadsJson(name_of(*role)) : HeadsJson();
  }
  return written(json);
}

std::string relations_json(const RelationsReport& report, const std::string& model) {
  HeadsJson json = json_of_model(model);
  add_read(json, report.read);
  json["best"] = list_of(report.chosen);
  if (!report.random.empty()) json["random"] = list_of(report.random);
  json["relations"] = HeadsJson::array();
  for (size_t i = 0; i < report.all.size(); ++i) {
    HeadsJson& score = json["relations"].emplace_back(with_intervals(report.all[i]));
    score["on_half"] = {report.on_chosen[i].score(), report.on_scored[i].score()};
  }
  if (report.probe) json["probe"] = json_of(*report.probe);
  if (report.random_probe) json["random_probe"] = json_of(*report.random_probe);
  return written(json);
}

std::string alignment_json(const AlignmentReport& report, const std::string& model) {
  HeadsJson json = json_of_model(model);
  add_read(json, report.read);
  json["alignment"] = HeadsJson::array();
  for (const AlignmentScore& score : report.aligners) json["alignment"].push_back(json_of(score));
  json["alignment_baseline"] = json_of(report.baseline);
  return written(json);
}

}  // namespace mh
