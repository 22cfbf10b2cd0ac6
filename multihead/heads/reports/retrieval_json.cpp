#include "multihead/heads/reports/retrieval_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

HeadsJson json_of_needle(const NeedleTokens& needle) {
  return {{"sentence", needle.text.sentence},
          {"question", needle.text.question},
          {"answer", needle.text.answer},
          {"answer_tokens", needle.answer},
          {"tokens", needle.tokens}};
}

HeadsJson json_of_trial(const RetrievalTrial& trial) {
  return {{"needle", trial.needle}, {"length", trial.length}, {"depth", trial.depth},
          {"place", trial.place},   {"exact", trial.exact},   {"log_probability", trial.log_probability}};
}

HeadsJson json_of_place(const RetrievalPlace& place) {
  return {{"length", place.length},
          {"depth", place.depth},
          {"exact", place.exact},
          {"log_probability", place.log_probability}};
}

HeadsJson json_of_head(const RetrievalHead& head) {
  return {{"head", head.head.name()},
          {"score", head.score.mean},
          {"score_half", half_or_null(head.score)},
          {"weight", head.weight.mean},
          {"weight_half", half_or_null(head.weight)},
          {"by_place", head.by_place}};
}

HeadsJson json_of_need(const RetrievalNeed& need) {
  HeadsJson json{
      {"heads", json_items(need.heads, [](const HeadName& head) { return HeadsJson(head.name()); })},
      {"fall", need.fall.mean},
      {"fall_half", half_or_null(need.fall)}};
  if (need.loss_rise) {
    json["loss_rise"] = need.loss_rise->mean;
    json["loss_rise_half"] = half_or_null(*need.loss_rise);
  }
  return json;
}

}  // namespace

std::string retrieval_json(const RetrievalReport& retrieval, const std::string& model) {
  HeadsJson json = json_of_model(model);
  json["exact"] = retrieval.exact();
  json["log_probability"] = retrieval.log_probability();
  json["needles"] = json_items(retrieval.needles, json_of_needle);
  json["trials"] = json_items(retrieval.trials, json_of_trial);
  json["places"] = json_items(retrieval.places(), json_of_place);
  json["heads"] = json_items(retrieval.heads, json_of_head);
  if (!retrieval.needs.empty()) {
    json["text_loss"] = json_or_null(retrieval.text_loss);
    json["limited"] = json_items(retrieval.needs, json_of_need);
  }
  return written(json);
}

}  // namespace mh
