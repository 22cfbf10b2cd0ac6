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

HeadsJson json_of(const ProbeScore& probe) {
  const auto json_of_head = [](const DependencyProbe::Head& head) -> HeadsJson {
    return {{"head", head.name}, {"reads", head.reads}, {"read", head.read}};
  };
  return {{"score", probe.score()}, {"words", probe.words}, {"heads", json_items(probe.heads, json_of_head)}};
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
  json["best"] = json_items(report.chosen, with_intervals);
  if (!report.random.empty()) json["random"] = json_items(report.random, with_intervals);
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
  json["alignment"] = json_items(report.aligners, [](const AlignmentScore& score) { return json_of(score); });
  json["alignment_baseline"] = json_of(report.baseline);
  if (report.chosen) {
    HeadsJson& chosen = json["chosen"] = json_of(report.chosen->score);
    chosen.erase("offset");  // they are no fixed one
    chosen["query"] = name_of(report.chosen->heads.query, kAlignedQueryNames);
    chosen["heads"] = json_items(report.chosen->heads.heads, [](const AligningHead& one) -> HeadsJson {
      return {one.layer, one.head};
    });
  }
  return written(json);
}

}  // namespace mh
