#include "multihead/heads/reports/patch_json.h"

#include <tuple>

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

HeadsJson json_of_scores(const AnswerScores& scores) {
  return {{"answer", scores.answer}, {"wrong", scores.wrong}, {"score", scores.score()}};
}

}  // namespace

std::string patch_json(const PatchReport& patching, const std::string& model) {
  HeadsJson json = json_of_model(model);
  json["what"] = name_of(patching.part, kPatchedPartNames);
  json["measure"] = name_of(patching.score, kPatchScoreNames);
  if (patching.texts.of_token) json["token"] = patching.texts.predicting;
  json["answer"] = json_of(patching.texts.answer);
  json["wrong"] = json_of(patching.texts.wrong);
  for (const auto& [name, text, scores] :
       {std::tuple("clean", &patching.texts.clean, &patching.clean),
        std::tuple("corrupt", &patching.texts.corrupt, &patching.corrupt)}) {
    json[name] = json_of_scores(*scores);
    json[name]["tokens"] = text->labels;
  }
  if (!patching.texts.target.ids.empty()) json["target"] = patching.texts.target.labels;
  json["values"] = HeadsJson::array();
  for (const PatchedValue& value : patching.values) {
    HeadsJson& of = json["values"].emplace_back();
    of["name"] = value.name;
    of["position"] = json_or_null(value.place.position);
    of["answer"] = value.scores.answer;
    of["wrong"] = value.scores.wrong;
    of["score"] = value.scores.score();
    of["restored"] = value.restored;
  }
  return written(json);
}

}  // namespace mh
