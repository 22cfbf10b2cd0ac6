// Finds the scheme of a description, and defines the answers that most schemes share.
#include <fmt/format.h>

#include <utility>

#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/query_key_scheme.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

/// visit.operator()<kWay>() for every value in a table of names.
template <const auto& kNames, class Visit>
void for_each_named(const Visit& visit) {
  [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    (visit.template operator()<(kNames.begin() + kAt)->second>(), ...);
  }
  (std::make_index_sequence<kNames.size()>());
}

std::vector<GeometryPreset> all_presets() {
  std::vector<GeometryPreset> all;
  const auto add = [&](const std::vector<GeometryPreset>& presets) {
    all.insert(all.end(), presets.begin(), presets.end());
  };
  for_each_named<kScoresNames>([&]<Scores kWay>() { add(head_scheme<kWay>().presets()); });
  for_each_named<kHeadInputNames>([&]<HeadInput::Kind kWay>() {
    if constexpr (kWay != HeadInput::Kind::kWholeRow) add(head_scheme<kWay>().presets());
  });
  for_each_named<kQueryKeyNormNames>([&]<QueryKeyNorm kWay>() { add(query_key_scheme<kWay>().presets()); });
  for_each_named<kHeadWeightsNames>([&]<HeadWeights kWay>() { add(weight_scheme<kWay>().presets()); });
  return all;
}

}  // namespace

HeadGeometry geometry_preset(std::string_view name, int heads, int d_model) {
  std::string names;
  for (const GeometryPreset& preset : all_presets()) {
    if (preset.name.name == name) return preset.make(heads, d_model);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name.name);
  }
  throw UsageError(fmt::format("geometry '{}' is unknown; choose one of {}", name, names));
}

std::vector<GeometryName> geometry_names() {
  std::vector<GeometryName> names;
  for (const GeometryPreset& preset : all_presets()) names.push_back(preset.name);
  return names;
}

const HeadScheme& scheme_of(const HeadGeometry& geometry) {
  const HeadScheme* found = nullptr;
  for_each_named<kScoresNames>([&]<Scores kWay>() {
    if (kWay == geometry.scores) found = &head_scheme<kWay>();
  });
  for_each_named<kHeadInputNames>([&]<HeadInput::Kind kWay>() {
    if constexpr (kWay != HeadInput::Kind::kWholeRow) {
      if (kWay == geometry.input.kind) found = &head_scheme<kWay>();
    }
  });
  MH_ASSERT(found != nullptr);
  return *found;
}

const WeightScheme& weight_scheme_of(const HeadGeometry& geometry) {
  const WeightScheme* found = nullptr;
  for_each_named<kHeadWeightsNames>([&]<HeadWeights kWay>() {
    if (kWay == geometry.weights) found = &weight_scheme<kWay>();
  });
  MH_ASSERT(found != nullptr);
  return *found;
}

const QueryKeyScheme& query_key_scheme_of(const HeadGeometry& geometry) {
  const QueryKeyScheme* found = nullptr;
  for_each_named<kQueryKeyNormNames>([&]<QueryKeyNorm kWay>() {
    if (kWay == geometry.query_key_norm) found = &query_key_scheme<kWay>();
  });
  MH_ASSERT(found != nullptr);
  return *found;
}

HeadShape HeadScheme::shape(const HeadGeometry& g, int) const {
  return {g.heads, g.key_heads, g.value_heads, g.d_key, g.d_value, *g.scale};
}

std::optional<Block> HeadScheme::block(const HeadGeometry& g, int, const NamedShape& parameter,
                                       int head) const {
  return columns_of_head(parameter, head, g.heads,
                         {{"w_q", g.heads},
                          {"b_q", g.heads},
                          {"w_k", g.key_heads},
                          {"b_k", g.key_heads},
                          {"w_v", g.value_heads},
                          {"b_v", g.value_heads},
                          {"distance_w_k", g.heads},
                          {"distance_b_k", g.heads},
                          {"distance_w_q", g.heads},
                          {"distance_b_q", g.heads}});
}

LedgerPart HeadScheme::cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const {
  LedgerPart cost;
  const HeadShape as = shape(g, rows.d_model);
  cost.add_affine(rows.of(part), rows.d_model, count_product({as.heads_of(part), as.size_of(part)}),
                  has_bias_of_heads(g.biases));
  return cost;
}

HeadMatrix HeadScheme::head_matrix(const LayerWeights& layer, HeadPart part, int head) const {
  HeadMatrix found{own_part(layer, weight_name(part), head), {}};
  found.bias = layer.has(bias_name(part)) ? own_part(layer, bias_name(part), head)
                                          : DoubleMatrix(1, found.weight.cols());
  return found;
}

std::string HeadScheme::formula(const TraceNames& names, HeadPart part, const std::string& rows,
                                int head) const {
  const std::string product = rows + " " + names.of_head(weight_name(part), head);
  return names.has(bias_name(part)) ? product + " + " + names.of_head(bias_name(part), head) : product;
}

LayerWeights HeadScheme::to_canonical(const LayerWeights& layer, const CanonicalOptions&) const {
  LayerWeights to = with_outputs_of(layer, Scores::kQueryKey);
  const HeadShape as = shape(layer.geometry, layer.d_model);
  to.geometry.d_key = as.d_key;
  to.geometry.key_heads = as.key_heads;
  put_projection(to, HeadPart::kQueries, heads_of(layer, HeadPart::kQueries, as.heads));
  put_projection(to, HeadPart::kKeys, heads_of(layer, HeadPart::kKeys, as.key_heads));
  return to;
}

LayerWeights HeadScheme::from_heads(const LayerWeights&, const HeadGeometry& wanted) const {
  throw UsageError(fmt::format("there is no conversion to {} heads; convert to canonical ones",
                               name_of(wanted.scores, kScoresNames)));
}

void WeightScheme::add_softmax_moves(LedgerPart& cost, int64_t maps) const {
  const int64_t bytes = count_product({kFloatBytes, maps});
  cost.read_bytes = count_sum(cost.read_bytes, count_product({2, bytes}));
  cost.written_bytes =
      count_sum(cost.written_bytes, count_product({2, bytes}));  // scaled scores, and weights
  cost.kept_bytes = count_sum(cost.kept_bytes, bytes);
}

Tensor traced_average(WeighingTrace& trace, int head, const TracedMap& weights) {
  return copied(ops::matmul(trace.tape(), weights.value, trace.values(head)).value());
}

}  // namespace mh
