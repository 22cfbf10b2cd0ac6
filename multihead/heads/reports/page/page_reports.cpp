#include "multihead/heads/reports/page/page_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "multihead/base/enum_names.h"
#include "multihead/generate/search.h"
#include "multihead/heads/circuit/stream_graph.h"
#include "multihead/heads/reports/page/report_members.h"
#include "multihead/heads/reports/pictures/draw_circuit.h"
#include "multihead/heads/reports/read_report.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/head_name.h"
#include "multihead/text/json_node.h"

namespace mh {
namespace {

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
    HeadsJson read = members_of(
        edge, {{"from", MemberKind::kText}, {"to", MemberKind::kText}, {"score", MemberKind::kNumber}});
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

std::string query_of(const JsonNode& of) {
  const JsonNode query = of.at("query");
  if (!value_named(query.text(), kAlignedQueryNames))
    query.fail(fmt::format("expected {}, got {}", names_listed(kAlignedQueryNames, " or "),
                           in_quotes(query.text())));
  return query.text();
}

HeadsJson link_score(const JsonNode& of) {
  return members_of(of, {{"precision", MemberKind::kShare},
                         {"recall", MemberKind::kShare},
                         {"error_rate", MemberKind::kShare},
                         {"accuracy", MemberKind::kShare},
                         {"support", MemberKind::kCount}});
}

/// The heads of cross-attention of a report, each of which it must have once for each query.
class ReportedAligners {
 public:
  explicit ReportedAligners(const Model& model) : heads_(model, AttentionKind::kCross) {
    for (const Model::Attention& attention : model.attentions()) {
      if (attention.place.kind == AttentionKind::kCross)
        attention_of_layer_.emplace(attention.place.layer, attention.name);
    }
  }

  HeadsJson read(const JsonNode& root) const {
    if (attention_of_layer_.empty())
      root.fail("it is of heads of cross-attention, and the model has none; give the report of this model");
    std::map<std::string, std::set<std::string>> heads, means;  // by query
    HeadsJson json = json_items(root.at("alignment").items(), [&](const JsonNode& one) {
      const JsonNode head = one.at("head");
      const std::string query = query_of(one);
      const bool mean = is_mean(head.text());
      if (!mean) heads_.check(head, head.text());
      if (!(mean ? means : heads)[query].insert(head.text()).second)
        one.fail(fmt::format("{} is there twice by the same query; make the report again", head.text()));
      HeadsJson score = {{"head", head.text()}, {"query", query}};
      score.update(link_score(one));
      return score;
    });
    for (const auto& [query, unused] : kAlignedQueryNames) heads_.check_count(root, heads[query].size());
    return json;
  }

  /// Layers and numbers of heads as names.
  HeadsJson read_chosen(const JsonNode& chosen) const {
    HeadsJson json = {{"query", query_of(chosen)}};
    if (chosen.at("heads").size() == 0) chosen.at("heads").fail("expected one head at least");
    json["heads"] = json_items(chosen.at("heads").items(), [&](const JsonNode& pair) {
      if (pair.size() != 2) pair.fail("expected the number of a layer and that of a head");
      const int layer = pair.item(0).number(), head = pair.item(1).number();
      const auto attention = attention_of_layer_.find(layer);
      if (attention == attention_of_layer_.end())
        pair.fail(fmt::format("the model has no layer {} of cross-attention; give the report of this model",
                              layer));
      const std::string name = HeadName{attention->second, head}.name();
      heads_.check(pair, name);
      return HeadsJson(name);
    });
    json.update(link_score(chosen));
    return json;
  }

 private:
  bool is_mean(const std::string& name) const {
    return std::any_of(attention_of_layer_.begin(), attention_of_layer_.end(),
                       [&](const auto& layer) { return name == layer.second + ".mean"; });
  }

  ReportedHeads heads_;
  std::map<int, std::string> attention_of_layer_;
};

}  // namespace

std::string page_circuit(const Model& model, const PageReport& report) {
  if (report.json.empty()) return "";
  const nlohmann::json document = read_report(report.json, "circuit", report.name);
  const JsonNode root(document, "", report.name);
  const StreamGraph graph(model);
  const ReportedEdges edges(graph);
  HeadsJson json = origin_of(root);
  json.update(members_of(root, {{"measure", MemberKind::kText},
                                {"pairs", MemberKind::kCount},
                                {"proved_pairs", MemberKind::kCount},
                                {"clean", MemberKind::kNumber},
                                {"corrupt", MemberKind::kNumber},
                                {"share", MemberKind::kNumber},
                                {"edges_of_model", MemberKind::kCount},
                                {"faithfulness", MemberKind::kInterval},
                                {"completeness", MemberKind::kInterval},
                                {"pairs_elsewhere", MemberKind::kCount}}));
  if (root.at("edges_of_model").number() != std::ssize(graph.edges()))
    root.fail(fmt::format("its model has {} edges, and this one {}; give the report of this model",
                          root.at("edges_of_model").number(), graph.edges().size()));
  json["faithfulness_elsewhere"] = nullptr;
  if (const auto elsewhere = root.find("faithfulness_elsewhere"))
    json["faithfulness_elsewhere"] = interval_at(*elsewhere);
  json["edges_of_circuit"] = root.at("edges").size();
  json["edges"] = edges.read(root.at("edges"));
  json["exact"] = edges.read(root.at("exact"));
  json["random"] = members_of(root.at("random"), {{"count", MemberKind::kCount},
                                                  {"pairs", MemberKind::kCount},
                                                  {"circuit", MemberKind::kNumber},
                                                  {"mean", MemberKind::kNumber},
                                                  {"most", MemberKind::kNumber},
                                                  {"as_faithful", MemberKind::kCount}});
  return written_for_page(std::move(json));
}

std::string page_retrieval(const Model& model, const PageReport& report) {
  if (report.json.empty()) return "";
  const nlohmann::json document = read_report(report.json, "retrieval", report.name);
  const JsonNode root(document, "", report.name);
  const ReportedHeads heads(model);
  HeadsJson json = origin_of(root);
  json.update(members_of(root, {{"exact", MemberKind::kNumber}, {"log_probability", MemberKind::kNumber}}));
  const JsonNode options = root.at("options");
  json["options"] = members_of(options, {{"answers", MemberKind::kText},
                                         {"limit", MemberKind::kText},
                                         {"sinks", MemberKind::kCount},
                                         {"window", MemberKind::kCount}});
  json["needles"] = json_items(root.at("needles").items(), [](const JsonNode& needle) {
    return members_of(
        needle,
        {{"sentence", MemberKind::kText}, {"question", MemberKind::kText}, {"answer", MemberKind::kText}});
  });
  json["places"] = json_items(root.at("places").items(), [](const JsonNode& place) {
    return members_of(place, {{"length", MemberKind::kCount},
                              {"depth", MemberKind::kNumber},
                              {"exact", MemberKind::kNumber},
                              {"log_probability", MemberKind::kNumber}});
  });
  json["heads"] = json_items(root.at("heads").items(), [&](const JsonNode& head) {
    heads.check(head.at("head"), head.at("head").text());
    if (head.at("by_place").size() != json["places"].size())
      head.at("by_place")
          .fail(fmt::format("expected {} numbers, one for each of `places`, got {}", json["places"].size(),
                            head.at("by_place").size()));
    return members_of(head, {{"head", MemberKind::kText},
                             {"score", MemberKind::kNumber},
                             {"score_half", MemberKind::kNumberOrNull},
                             {"weight", MemberKind::kNumber},
                             {"weight_half", MemberKind::kNumberOrNull},
                             {"by_place", MemberKind::kNumbers}});
  });
  heads.check_count(root, json["heads"].size());
  json["limited"] = HeadsJson::array();
  if (const auto limited = root.find("limited")) {
    for (const JsonNode& one : limited->items()) {
      HeadsJson need = members_of(one, {{"fall", MemberKind::kNumber},
                                        {"fall_half", MemberKind::kNumberOrNull},
                                        {"loss_rise", MemberKind::kNumberOrNull},
                                        {"loss_rise_half", MemberKind::kNumberOrNull}});
      need["heads"] = json_items(one.at("heads").items(), [&](const JsonNode& head) {
        heads.check(head, head.text());
        return HeadsJson(head.text());
      });
      json["limited"].push_back(std::move(need));
    }
  }
  return written_for_page(std::move(json));
}

std::string page_aligners(const Model& model, const PageReport& report) {
  if (report.json.empty()) return "";
  const nlohmann::json document = read_report(report.json, "alignment", report.name);
  const JsonNode root(document, "", report.name);
  const ReportedAligners aligners(model);
  HeadsJson json = origin_of(root);
  json.update(members_of(root, {{"sentences", MemberKind::kCount}, {"targets", MemberKind::kText}}));
  json["alignment"] = aligners.read(root);
  const JsonNode baseline = root.at("alignment_baseline");
  json["alignment_baseline"] = members_of(baseline, {{"offset", MemberKind::kNumber}});
  json["alignment_baseline"].update(link_score(baseline));
  const auto chosen = root.find("chosen");
  json["chosen"] = chosen ? aligners.read_chosen(*chosen) : HeadsJson();
  return written_for_page(std::move(json));
}

}  // namespace mh
