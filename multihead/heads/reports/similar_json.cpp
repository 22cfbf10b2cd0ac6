#include "multihead/heads/reports/similar_json.h"

#include <cmath>
#include <optional>
#include <vector>

#include "multihead/heads/reports/json_parts.h"
#include "multihead/nn/attention_place.h"

namespace mh {
namespace {

HeadsJson pairs_json(const std::optional<PairsMean>& mean) {
  if (!mean) return {};
  return {{"pairs", mean->pairs},
          {"divergence", json_of(mean->divergence)},
          {"null_divergence", json_of(mean->null_divergence)},
          {"difference", json_of(mean->difference)},
          {"ratio", mean->ratio ? json_of(*mean->ratio) : HeadsJson()}};
}

HeadsJson shared_keys_json(const std::optional<SharedKeysMean>& mean) {
  if (!mean) return {};
  return {{"sharing", pairs_json(mean->sharing)},
          {"others", pairs_json(mean->others)},
          {"difference", json_of(mean->difference)},
          {"null_difference", json_of(mean->null_difference)}};
}

HeadsJson pair_json(const ComparedHeads& compared, size_t head, size_t other) {
  const double divergence = compared.divergence_of(head, other), null = compared.null_of(head, other);
  return {{"head", compared.heads[other].name()},
          {"divergence", divergence},
          {"null_divergence", null},
          {"ratio", null > 0 ? HeadsJson(divergence / null) : HeadsJson()}};
}

HeadsJson names_json(const ComparedHeads& compared, const std::vector<int>& heads) {
  return json_items(heads, [&](int h) { return compared.heads[static_cast<size_t>(h)].name(); });
}

HeadsJson kind_json(const SimilarKind& kind) {
  const ComparedHeads& compared = kind.compared;
  HeadsJson json{{"kind", name_of(compared.kind)}, {"queries", compared.queries}};
  json["heads"] = HeadsJson::array();
  for (size_t h = 0; h < compared.heads.size(); ++h) {
    const ComparedHead& head = compared.heads[h];
    HeadsJson& of = json["heads"].emplace_back(
        HeadsJson{{"head", head.name()}, {"key_head", head.key_head}, {"entropy", head.entropy}});
    of["nearest"] = json_items(kind.nearest[h],
                               [&](int other) { return pair_json(compared, h, static_cast<size_t>(other)); });
  }
  json["within_layers"] = pairs_json(compared.within_layers);
  json["between_layers"] = pairs_json(compared.between_layers);
  json["shared_keys"] = shared_keys_json(compared.shared_keys);
  json["layers"] = json_items(compared.layers, [](const ComparedLayer& layer) -> HeadsJson {
    return {{"attention", layer.attention},
            {"within", pairs_json(layer.within)},
            {"to_others", pairs_json(layer.to_others)},
            {"shared_keys", shared_keys_json(layer.shared_keys)}};
  });
  json["merges"] = HeadsJson::array();
  for (size_t k = 0; k < kind.tree.merges.size(); ++k) {
    const Merge& merge = kind.tree.merges[k];
    json["merges"].push_back({{"first", merge.first},
                              {"second", merge.second},
                              {"height", merge.height},
                              {"null_height", kind.null_heights[k]},
                              {"size", merge.size}});
  }
  json["order"] = names_json(compared, kind.tree.order());
  json["clusters"] = json_items(
      kind.clusters, [&](int cluster) { return names_json(compared, kind.tree.points_of(cluster)); });
  json["divergence"] = json_rows(compared.divergence, compared.heads.size());
  json["null_divergence"] = json_rows(compared.null_divergence, compared.heads.size());
  return json;
}

}  // namespace

std::string similar_json(const SimilarReport& similar, const std::string& model) {
  HeadsJson json = json_of_model(model);
  add_read(json, similar.read);
  json["seed"] = similar.seed;
  json["cluster_ratio"] = similar.cluster_ratio;
  json["kinds"] = json_items(similar.kinds, kind_json);
  return written(json);
}

}  // namespace mh
