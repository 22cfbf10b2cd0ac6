#include "multihead/heads/reports/attribution_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
std::string attribution_json(const AttributionReport& found, const std::string& model,
                             const std::string& text) {
  HeadsJson json = json_of_model(model);
  json["text"] = text;
  if (!found.pair.empty()) json["pair"] = found.pair;
  const bool of_label = !found.label.empty();
  json["explained"] = of_label ? "logit" : found.explained.empty() ? "cosine" : "log-probability";
  if (of_label) {
    json["label"] = found.label;
    json["label_id"] = found.explained_id;
    if (found.position >= 0) json["position"] = found.position;
  } else if (found.explained.empty()) {
    json["second"] = found.second;
  } else {
    json["position"] = found.position;
    json["token"] = found.explained;
    json["token_id"] = found.explained_id;
  }
  if (!found.translation.empty()) json["translation"] = found.translation;
  json["score"] = found.score;
  json["replacement"] = found.source_replacement;
  if (!found.target_replacement.empty()) json["target_replacement"] = found.target_replacement;
  json["replaced_score"] = found.replaced_score;
  json["completeness_error"] = json_or_null(found.completeness_error);
  json["tokens"] = HeadsJson::array();
  for (size_t i = 0; i < found.tokens.size(); ++i) {
    const ReadToken& token = found.tokens[i];
    HeadsJson& one = json["tokens"].emplace_back();
    one["side"] = name_of(token.side, kTokenSideNames);
    one["id"] = token.id;
    one["token"] = token.token;
    one["begin"] = token.characters.first;
    one["end"] = token.characters.second;
    if (!found.pair.empty()) one["of_pair"] = token.of_pair;
    one["kept"] = token.kept;
    for (const MethodScores& method : found.methods)
      one["scores"][name_of(method.method, kAttributionMethodNames)] = method.scores[i];
  }
  return written(json);
}

std::string faithfulness_json(const Faithfulness& found, const std::string& model) {
  HeadsJson json = json_of_model(model);
  json["sentences"] = found.sentences;
  json["left_out"] = found.left_out;
  json["replacement"] = found.source_replacement;
  if (!found.target_replacement.empty()) json["target_replacement"] = found.target_replacement;
  json["score"] = json_of(found.score);
  json["replaced_score"] = json_of(found.replaced_score);
  json["methods"] = HeadsJson::array();
  for (const MethodFaithfulness& one : found.methods) {
    HeadsJson& method = json["methods"].emplace_back();
    method["method"] = one.method ? name_of(*one.method, kAttributionMethodNames) : "random";
    method["deletion"] = json_of(one.deletion);
    method["insertion"] = json_of(one.insertion);
    method["deletion_by_sentence"] = one.deletions;
    method["insertion_by_sentence"] = one.insertions;
    if (!one.method) continue;
    method["deletion_gain"] = json_of(one.deletion_gain);
    method["insertion_gain"] = json_of(one.insertion_gain);
  }
  return written(json);
}

}  // namespace mh
