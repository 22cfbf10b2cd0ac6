#include "multihead/heads/reports/page/page_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "multihead/heads/circuit/stream_graph.h"
#include "multihead/heads/reports/page/page_texts.h"
#include "multihead/heads/reports/pictures/draw_circuit.h"
#include "multihead/heads/reports/read_report.h"
#include "multihead/text/json_node.h"

namespace mh {
namespace {

constexpr int kReportDigits = 4;

enum class Kind { kText, kCount, kNumber, kNumberOrNull, kNumbers, kInterval };

struct Member {
  const char* name;
  Kind kind;
};

double number_at(const JsonNode& node) {
  if (!node.value().is_number()) node.fail("expected a number");
  return node.value().get<double>();
}

HeadsJson number_or_null(const JsonNode& of, const char* name) {
  const auto found = of.find(name);
  return found ? HeadsJson(number_at(*found)) : HeadsJson();
}

HeadsJson interval_at(const JsonNode& of) {
  return {{"mean", number_at(of.at("mean"))}, {"half", number_or_null(of, "half")}};
}

HeadsJson member_of(const JsonNode& of, const Member& member) {
  if (member.kind == Kind::kNumberOrNull) return number_or_null(of, member.name);
  const JsonNode node = of.at(member.name);
  switch (member.kind) {
    case Kind::kText:
      return node.text();
    case Kind::kCount:
      return node.number();
    case Kind::kInterval:
      return interval_at(node);
    case Kind::kNumbers:
      return json_items(node.items(), [](const JsonNode& one) { return HeadsJson(number_at(one)); });
    case Kind::kNumber:
    case Kind::kNumberOrNull:
      break;
  }
  return number_at(node);
}

HeadsJson members_of(const JsonNode& of, std::initializer_list<Member> members) {
  HeadsJson json;
  for (const Member& member : members) json[member.name] = member_of(of, member);
  return json;
}

/// Which model the report names, and how precisely that ran.
HeadsJson origin_of(const JsonNode& root) {
  return members_of(root, {{"model", Kind::kText}, {"precision", Kind::kText}});
}

/// The edges of a report, each of which the graph must have.
class ReportedEdges {
 public:
  explicit ReportedEdges(const StreamGraph& graph) : graph_(graph) {
    for (const StreamSource& source : graph.sources()) sources_.emplace(source.name, sources_.size());
    for (const StreamTarget& target : graph.targets()) targets_.emplace(target.name, targets_.size());
  }

  HeadsJson read(const JsonNode& edges) const {
    HeadsJson all = HeadsJson::array();
    for (const JsonNode& edge : edges.items()) {
      HeadsJson read = edge_of(edge);
      if (all.size() < kMostDrawnEdges) all.push_back(std::move(read));
    }
    return all;
  }

 private:
  HeadsJson edge_of(const JsonNode& edge) const {
    HeadsJson read = members_of(edge, {{"from", Kind::kText}, {"to", Kind::kText}, {"score", Kind::kNumber}});
    const auto from = sources_.find(edge.at("from").text());
    const auto to = targets_.find(edge.at("to").text());
    if (from == sources_.end() || to == targets_.end() || !graph_.joins(from->second, to->second))
      edge.fail(fmt::format("the model has no edge from {} to {}; give the report of this model",
                            in_quotes(edge.at("from").text()), in_quotes(edge.at("to").text())));
    read["input"] = name_of(graph_.targets()[static_cast<size_t>(to->second)].kind, kCircuitInputNames);
    read["readers"] = HeadsJson::array();
    for (const JsonNode& reader : edge.at("readers").items()) {
      if (!sources_.contains(reader.text()) && reader.text() != to->first)
        reader.fail(
            fmt::format("the model has no {}; give the report of this model", in_quotes(reader.text())));
      read["readers"].push_back(reader.text());
    }
    if (const auto effect = edge.find("effect")) read["effect"] = interval_at(*effect);
    return read;
  }

  const StreamGraph& graph_;
  std::map<std::string, int> sources_, targets_;
};

std::string shortened(HeadsJson json) {
  return written(with_short_numbers(std::move(json), kReportDigits));
}

}  // namespace

std::string page_circuit(const Model& model, const PageReport& report) {
  if (report.json.empty()) return "";
  const nlohmann::json document = read_report(report.json, "circuit", report.name);
  const JsonNode root(document, "", report.name);
  const StreamGraph graph(model);
  const ReportedEdges edges(graph);
  HeadsJson json = origin_of(root);
  json.update(members_of(root, {{"measure", Kind::kText},
                                {"pairs", Kind::kCount},
                                {"proved_pairs", Kind::kCount},
                                {"clean", Kind::kNumber},
                                {"corrupt", Kind::kNumber},
                                {"share", Kind::kNumber},
                                {"edges_of_model", Kind::kCount},
                                {"faithfulness", Kind::kInterval},
                                {"completeness", Kind::kInterval},
                                {"pairs_elsewhere", Kind::kCount}}));
  if (root.at("edges_of_model").number() != std::ssize(graph.edges()))
    root.fail(fmt::format("its model has {} edges, and this one {}; give the report of this model",
                          root.at("edges_of_model").number(), graph.edges().size()));
  json["faithfulness_elsewhere"] = nullptr;
  if (const auto elsewhere = root.find("faithfulness_elsewhere"))
    json["faithfulness_elsewhere"] = interval_at(*elsewhere);
  json["edges_of_circuit"] = root.at("edges").size();
  json["edges"] = edges.read(root.at("edges"));
  json["exact"] = edges.read(root.at("exact"));
  json["random"] = members_of(root.at("random"), {{"count", Kind::kCount},
                                                  {"pairs", Kind::kCount},
                                                  {"circuit", Kind::kNumber},
                                                  {"mean", Kind::kNumber},
                                                  {"most", Kind::kNumber},
                                                  {"as_faithful", Kind::kCount}});
  return shortened(std::move(json));
}

std::string page_retrieval(const Model& model, const PageReport& report) {
  if (report.json.empty()) return "";
  const nlohmann::json document = read_report(report.json, "retrieval", report.name);
  const JsonNode root(document, "", report.name);
  std::set<std::string> names;
  for (const HeadName& head : model.heads_named(HeadPattern("*"))) names.insert(head.name());
  const auto check_head = [&](const JsonNode& head) {
    if (!names.contains(head.text()))
      head.fail(
          fmt::format("the model has no head {}; give the report of this model", in_quotes(head.text())));
  };
  HeadsJson json = origin_of(root);
  json.update(members_of(root, {{"exact", Kind::kNumber}, {"log_probability", Kind::kNumber}}));
  const JsonNode options = root.at("options");
  json["options"] = members_of(
      options,
      {{"answers", Kind::kText}, {"limit", Kind::kText}, {"sinks", Kind::kCount}, {"window", Kind::kCount}});
  json["needles"] = json_items(root.at("needles").items(), [](const JsonNode& needle) {
    return members_of(needle,
                      {{"sentence", Kind::kText}, {"question", Kind::kText}, {"answer", Kind::kText}});
  });
  json["places"] = json_items(root.at("places").items(), [](const JsonNode& place) {
    return members_of(place, {{"length", Kind::kCount},
                              {"depth", Kind::kNumber},
                              {"exact", Kind::kNumber},
                              {"log_probability", Kind::kNumber}});
  });
  json["heads"] = json_items(root.at("heads").items(), [&](const JsonNode& head) {
    check_head(head.at("head"));
    if (head.at("by_place").size() != json["places"].size())
      head.at("by_place")
          .fail(fmt::format("expected {} numbers, one for each of `places`, got {}", json["places"].size(),
                            head.at("by_place").size()));
    return members_of(head, {{"head", Kind::kText},
                             {"score", Kind::kNumber},
                             {"score_half", Kind::kNumberOrNull},
                             {"weight", Kind::kNumber},
                             {"weight_half", Kind::kNumberOrNull},
                             {"by_place", Kind::kNumbers}});
  });
  if (json["heads"].size() != names.size())
    root.fail(fmt::format("it has {} heads, and the model {}; give the report of this model",
                          json["heads"].size(), names.size()));
  json["limited"] = HeadsJson::array();
  if (const auto limited = root.find("limited")) {
    for (const JsonNode& one : limited->items()) {
      HeadsJson need = members_of(one, {{"fall", Kind::kNumber},
                                        {"fall_half", Kind::kNumberOrNull},
                                        {"loss_rise", Kind::kNumberOrNull},
                                        {"loss_rise_half", Kind::kNumberOrNull}});
      need["heads"] = json_items(one.at("heads").items(), [&](const JsonNode& head) {
        check_head(head);
        return HeadsJson(head.text());
      });
      json["limited"].push_back(std::move(need));
    }
  }
  return shortened(std::move(json));
}

}  // namespace mh
