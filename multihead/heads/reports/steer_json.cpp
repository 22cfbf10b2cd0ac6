#include "multihead/heads/reports/steer_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

HeadsJson json_of_direction(const SteerDirection& direction) {
  return {{"site", direction.site},
          {"head", json_or_null(direction.head)},
          {"columns", direction.numbers.size()},
          {"length", direction.length()},
          {"row_length", json_or_null(direction.row_length)},
          {"made", direction.made},
          {"weights_sha256", direction.weights}};
}

HeadsJson json_of_text(const SteeredText& text) {
  HeadsJson json{{"tokens", text.text.labels}};
  if (!text.target.ids.empty()) json["target"] = text.target.labels;
  json["answers"] = json_items(text.answers, [](const PatchAnswer& answer) { return json_of(answer); });
  return json;
}

HeadsJson json_of_dose(const SteerDose& dose, size_t answers) {
  HeadsJson json{{"strength", dose.strength}, {"log_probability", HeadsJson::array()}};
  for (size_t answer = 0; answer < answers; ++answer) json["log_probability"].push_back(dose.mean(answer));
  json["log_probabilities"] = dose.log_probabilities;
  json["loss"] = json_or_null(dose.loss);
  json["perplexity"] = dose.loss ? HeadsJson(dose.perplexity()) : HeadsJson();
  return json;
}

}  // namespace

std::string steer_json(const SteerReport& steering, const std::string& model) {
  HeadsJson json = json_of_model(model);
  json["direction"] = json_of_direction(steering.direction);
  json["texts"] = json_items(steering.texts, json_of_text);
  json["other"] = {{"texts", steering.other_texts}, {"tokens", steering.other_tokens}};
  json["doses"] = json_items(steering.doses,
                             [&](const SteerDose& dose) { return json_of_dose(dose, steering.answers()); });
  return written(json);
}

}  // namespace mh
