#include "multihead/heads/reports/contributions_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

/// What both reports say first.
template <class Found>
HeadsJson json_of_contributions(const Found& found, const std::string& model) {
  HeadsJson json = json_of_model(model);
  json["measure"] = name_of(found.kind, kContributionScoreNames);
  json["centred"] = found.centred;
  return json;
}

template <class Part>
HeadsJson json_of_part(const Part& part) {
  HeadsJson json{{"name", part.name}, {"kind", name_of(part.kind, kContributionKindNames)}};
  json["layer"] = part.layer < 0 ? HeadsJson() : HeadsJson(part.layer);
  return json;
}

}  // namespace

std::string contributions_json(const ContributionReport& found, const std::string& model) {
  HeadsJson json = json_of_contributions(found, model);
  const bool every = !found.scores.empty();
  json["answer"] = every || !found.asked.answer ? HeadsJson() : json_of(*found.asked.answer);
  json["wrong"] = found.asked.wrong ? json_of(*found.asked.wrong) : HeadsJson();
  if (found.asked.of_token) json["token"] = found.asked.predicting;
  json["score"] = found.score;
  json["sum"] = found.sum;
  json["magnitude"] = found.magnitude;
  json["error"] = found.error();
  json["tokens"] = found.position_labels();
  if (!found.asked.target.ids.empty()) json["source_tokens"] = found.asked.text.labels;
  if (every) json["scores"] = found.scores;
  json["parts"] = json_items(found.parts, [](const Contribution& part) {
    HeadsJson one = json_of_part(part);
    one["sum"] = part.sum;
    one["positions"] = part.positions.empty() ? HeadsJson() : HeadsJson(part.positions);
    one["sources"] = part.sources.empty() ? HeadsJson() : HeadsJson(part.sources);
    return one;
  });
  return written(json);
}

std::string contributions_json(const MeanContributions& found, const std::string& model) {
  HeadsJson json = json_of_contributions(found, model);
  json["texts"] = found.texts;
  json["every_position"] = found.every_position;
  json["score"] = json_of(found.score);
  json["largest_error"] = found.largest_error;
  json["parts"] = json_items(found.parts, [](const MeanContribution& part) {
    HeadsJson one = json_of_part(part);
    one["sum"] = json_of(part.sum);
    return one;
  });
  return written(json);
}

}  // namespace mh
