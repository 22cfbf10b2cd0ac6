#include "multihead/heads/reports/json_parts.h"

#include <fmt/format.h>

#include <cmath>

#include "multihead/heads/reports/report_json.h"
#include "multihead/kernels/product_kernels.h"

namespace mh {
namespace {

using Json = HeadsJson;

const char* direction_key(Direction direction) {
  if (direction == Direction::kToHead) return "to_head";
  return direction == Direction::kToDependent ? "to_dependent" : "read_by_head";
}

}  // namespace

HeadsJson half_or_null(const Interval& interval) {
  return std::isfinite(interval.half) ? HeadsJson(interval.half) : HeadsJson();
}

HeadsJson json_of(const Interval& interval) {
  return {{"mean", interval.mean}, {"half", half_or_null(interval)}};
}

Json json_of_model(const std::string& model) {
  return {{"schema", kHeadsSchema}, {"model", model}};
}

void add_read(Json& json, const CorpusRead& read) {
  json["sentences"] = read.sentences;
  if (read.targets != TargetsRead::kNone)
    json["targets"] = read.targets == TargetsRead::kGreedy ? "greedy translations" : "given";
}

Json json_of(const HeadFigures& head) {
  Json json;
  json["head"] = head.name();
  json["queries"] = head.queries;
  json["entropy"] = head.entropy;
  json["entropy_share"] = head.entropy_share;
  json["distance"] = head.distance;
  for (size_t o = 0; o < HeadFigures::kOffsets; ++o) {
    const std::string offset = fmt::format("{:+d}", static_cast<int>(o) - HeadFigures::kReach);
    json["at_offset"][offset] = head.at_offset[o];
    json["most_at_offset"][offset] = head.most_at_offset[o];
  }
  json["on_end"] = head.on_end;
  json["on_first"] = head.on_first;
  json["on_separators"] = head.on_separators;
  json["cosine"] = json_or_null(head.cosine);
  json["divergence"] = json_or_null(head.divergence);
  return json;
}

Json json_of(const RelationScore& score) {
  return {{"head", score.name()},
          {"relation", score.relation},
          {"direction", direction_key(score.direction)},
          {"score", score.score()},
          {"baseline", score.baseline()},
          {"baseline_offset", score.offset},
          {"support", score.support}};
}

Json json_of(const AlignmentScore& score) {
  Json json;
  if (score.attention.empty()) {
    json["offset"] = score.offset;
  } else {
    json["head"] = score.name();
    json["query"] = name_of(score.query, kAlignedQueryNames);
  }
  json["accuracy"] = score.accuracy();
  json["precision"] = score.precision();
  json["recall"] = score.recall();
  json["error_rate"] = score.error_rate();
  json["support"] = score.support;
  return json;
}

Json json_of_kernels(PrecisionChoice precision) {
  Json json;
  for (const auto& [name, weights] : kWeightsKindNames)
    json[name] = name_of(kernel_for(precision, weights), kProductKernelNames);
  return json;
}

Json json_rows(const std::vector<double>& numbers, size_t rows) {
  Json all = Json::array();
  for (size_t r = 0; r < rows; ++r) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(r * rows);
    all.push_back(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(rows)));
  }
  return all;
}

HeadsJson json_of(const PatchAnswer& answer) {
  HeadsJson json{{"text", answer.text}};
  if (!answer.token) return json;
  json["token"] = answer.label;
  json["id"] = *answer.token;
  json["tokens"] = answer.tokens;
  return json;
}

std::string written(const Json& json) {
  constexpr auto kReplace =
      Json::error_handler_t::replace;  // a token may be part of a character, a path no UTF-8
  return json.dump(1, ' ', false, kReplace) + "\n";
}

}  // namespace mh
