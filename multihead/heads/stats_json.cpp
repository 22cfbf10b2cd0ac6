#include "multihead/heads/stats_json.h"

#include "multihead/heads/json_parts.h"

namespace mh {

std::string stats_json(const HeadStatsReport& report, const std::string& model) {
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

}  // namespace mh
