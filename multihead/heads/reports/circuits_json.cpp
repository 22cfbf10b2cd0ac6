#include "multihead/heads/reports/circuits_json.h"

#include <vector>

#include "multihead/heads/reports/json_parts.h"
#include "multihead/nn/heads.h"

namespace mh {
namespace {

HeadsJson json_of_circuit(const Circuit& circuit) {
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
  HeadsJson json;
  json["schema"] = kCircuitsSchema;
  json["model"] = model;
  json["circuits"] = json_items(circuits.heads, [](const HeadCircuits& head) -> HeadsJson {
    return {{"head", head.name()},
            {"query_key", json_of_circuit(head.query_key)},
            {"value_output", json_of_circuit(head.value_output)},
            {"copying", json_or_null(head.copying)}};
  });
  const std::vector<Composition> shown =
      strongest ? strongest_compositions(circuits, *strongest) : circuits.compositions;
  json["compositions"] = json_items(shown, [&](const Composition& composition) -> HeadsJson {
    return {{"from", circuits.heads[composition.from].name()},
            {"to", circuits.heads[composition.to].name()},
            {"part", name_of_part(composition.part)},
            {"strength", composition.strength},
            {"random", composition.random}};
  });
  return written(json);
}

}  // namespace mh
