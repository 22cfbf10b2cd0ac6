#include "multihead/heads/reports/circuits_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "multihead/nn/heads.h"

namespace mh {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of_circuit(const Circuit& circuit) {
  return {{"effective_rank", circuit.effective_rank},
          {"norm", circuit.norm},
          {"singular_values", circuit.singular_values}};
}

const char* name_of_part(HeadPart part) {
  return part == HeadPart::kQueries ? "queries" : part == HeadPart::kKeys ? "keys" : "values";
}

}  // namespace

std::string circuits_json(const std::string& model, const CircuitsReport& circuits,
                          std::optional<size_t> strongest) {
  OrderedJson json;
  json["schema"] = kCircuitsSchema;
  json["model"] = model;
  json["circuits"] = OrderedJson::array();
  for (const HeadCircuits& head : circuits.heads) {
    json["circuits"].push_back({{"head", head.name()},
                                {"query_key", json_of_circuit(head.query_key)},
                                {"value_output", json_of_circuit(head.value_output)},
                                {"copying", head.copying ? OrderedJson(*head.copying) : OrderedJson()}});
  }
  json["compositions"] = OrderedJson::array();
  const std::vector<Composition> shown =
      strongest ? strongest_compositions(circuits, *strongest) : circuits.compositions;
  for (const Composition& composition : shown) {
    json["compositions"].push_back({{"from", circuits.heads[composition.from].name()},
                                    {"to", circuits.heads[composition.to].name()},
                                    {"part", name_of_part(composition.part)},
                                    {"strength", composition.strength},
                                    {"random", composition.random}});
  }
  constexpr auto kReplace = OrderedJson::error_handler_t::replace;  // a path may be no UTF-8
  return json.dump(1, ' ', false, kReplace) + "\n";
}

}  // namespace mh
