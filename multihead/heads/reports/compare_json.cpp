#include "multihead/heads/reports/compare_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {

std::string compare_json(const CompareReport& report, const std::string& model) {
  const auto number = [](const std::optional<double>& value) {
    return value ? HeadsJson(*value) : HeadsJson();
  };
  HeadsJson json = json_of_model(model);
  json["after"] = report.after;
  add_read(json, report.read);
  json["seed"] = report.seed;
  json["heads"] = json_items(report.heads, [&](const ChangedHead& head) -> HeadsJson {
    return {{"head", head.name()},
            {"entropy_before", head.entropy_before},
            {"entropy_after", head.entropy_after},
            {"divergence", json_of(head.divergence)},
            {"null_divergence", json_of(head.null_divergence)},
            {"ratio", head.ratio ? json_of(*head.ratio) : HeadsJson()},
            {"qk_change", number(head.qk_change)},
            {"ov_change", number(head.ov_change)}};
  });
  return written(json);
}

}  // namespace mh
