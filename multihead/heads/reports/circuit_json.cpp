#include "multihead/heads/reports/circuit_json.h"

#include "multihead/heads/reports/json_parts.h"

namespace mh {
namespace {

HeadsJson json_of(const CircuitEdge& edge) {
  HeadsJson one{{"from", edge.from},
                {"to", edge.to},
                {"input", name_of(edge.input, kCircuitInputNames)},
                {"readers", edge.readers},
                {"score", edge.score}};
  if (edge.effect) one["effect"] = json_of(*edge.effect);
  return one;
}

HeadsJson json_of(const std::vector<CircuitEdge>& edges) {
  return json_items(edges, [](const CircuitEdge& edge) { return json_of(edge); });
}

}  // namespace

std::string circuit_json(const CircuitReport& found, const std::string& model) {
  HeadsJson json = json_of_model(model);
  json["measure"] = name_of(found.score, kPatchScoreNames);
  json["pairs"] = found.pairs;
  json["proved_pairs"] = found.proved_pairs;
  json["clean"] = found.clean;
  json["corrupt"] = found.corrupt;
  json["share"] = found.share;
  json["edges_of_model"] = found.edges_of_model;
  json["strongest"] = found.strongest;
  json["needed_pairs"] = found.needed_pairs;
  json["faithfulness"] = json_of(found.faithfulness);
  json["completeness"] = json_of(found.completeness);
  json["pairs_elsewhere"] = found.pairs_elsewhere;
  if (found.pairs_elsewhere > 0) json["faithfulness_elsewhere"] = json_of(found.faithfulness_elsewhere);
  json["edges"] = json_of(found.edges);
  json["exact"] = json_of(found.exact);
  const RandomCircuits& random = found.random;
  json["random"] = {{"count", random.count}, {"pairs", random.pairs}, {"circuit", random.circuit},
                    {"mean", random.mean},   {"most", random.most},   {"as_faithful", random.as_faithful}};
  return written(json);
}

}  // namespace mh
