#include "multihead/heads/reports/lens_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

HeadsJson json_of_token(const std::optional<LensToken>& token) {
  if (!token) return {};
  return {{"token", token->token}, {"id", token->id}};
}

HeadsJson json_of_rank(const LensRank& rank, const char* number) {
  return {{"rank", rank.rank}, {number, rank.log_probability}};
}

void add_reading(const LensReading& reading, bool of_logits, HeadsJson& of) {
  const char* const score = of_logits ? "logit" : "probability";
  const char* const log_score = of_logits ? "logit" : "log_probability";
  of["best"] = json_items(reading.best, [&](const LensWord& word) {
    return HeadsJson{{"token", word.token}, {"id", word.id}, {score, word.score}};
  });
  for (const auto& [name, rank] : {std::pair("answer", &reading.answer), std::pair("actual", &reading.actual),
                                   std::pair("predicted", &reading.predicted)}) {
    if (*rank) of[name] = json_of_rank(**rank, log_score);
  }
  if (reading.entropy) of["entropy"] = *reading.entropy;
  if (reading.divergence) of["divergence"] = *reading.divergence;
}

}  // namespace

std::string lens_json(const LensReport& lens, const std::string& model) {
  HeadsJson json = json_of_model(model);
  json["says"] = name_of(lens.says, kLensSaysNames);
  json["text"] = lens.text;
  if (!lens.pair.empty()) json["pair"] = lens.pair;
  if (!lens.second.empty()) json["second"] = lens.second;
  if (!lens.translation.empty()) json["translation"] = lens.translation;
  if (lens.says == LensSays::kLabels) json["scores"] = name_of(lens.scores, kLabelScoresNames);
  if (lens.answer) {
    json["answer"] = {{"text", lens.answer->text},
                      {"token", lens.answer->token.token},
                      {"id", lens.answer->token.id},
                      {"tokens", lens.answer->tokens}};
  }
  if (lens.says != LensSays::kVectors) {
    json["positions"] = json_items(lens.positions, [](const LensPosition& position) {
      return HeadsJson{{"position", json_or_null(position.position)},
                       {"token", position.position ? HeadsJson(position.token) : HeadsJson()},
                       {"actual", json_of_token(position.actual)},
                       {"predicted", json_of_token(position.predicted)}};
    });
  }
  const bool of_logits = lens.says == LensSays::kLabels && lens.scores == LabelScores::kLogits;
  json["values"] = HeadsJson::array();
  for (size_t place = 0; place < lens.places.size(); ++place) {
    const auto begin_value = [&]() -> HeadsJson& {
      HeadsJson& of = json["values"].emplace_back();
      of["site"] = lens.places[place].site;
      return of;
    };
    if (lens.says == LensSays::kVectors) {
      HeadsJson& of = begin_value();
      of["own"] = lens.cosines[place].own;
      if (lens.cosines[place].second) of["second"] = *lens.cosines[place].second;
    }
    for (size_t i = 0; i < lens.positions.size(); ++i) {
      HeadsJson& of = begin_value();
      of["position"] = json_or_null(lens.positions[i].position);
      add_reading(lens.at(place, i), of_logits, of);
    }
  }
  return written(json);
}

}  // namespace mh
