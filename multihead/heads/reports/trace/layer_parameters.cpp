#include "multihead/heads/reports/trace/layer_parameters.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/nn/query_key_scheme.h"

namespace mh {

LayerParameters::LayerParameters(const MultiHeadAttention& layer, int d_model)
    : geometry_(layer.geometry()), d_model_(d_model) {
  const ConstParameterVisitor keep = [&](const std::string& name, const Parameter& p) {
    all_.push_back({name.substr(1), &p.value.tensor()});
  };
  layer.visit("", keep);
  layer.visit_shared("", keep);
}

const LayerParameters::Named* LayerParameters::find_named(std::string_view name) const {
  for (const Named& p : all_) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

const Tensor* LayerParameters::find(std::string_view name) const {
  const Named* p = find_named(name);
  return p != nullptr ? p->value : nullptr;
}

std::optional<Block> LayerParameters::block(const Named& p, int head) const {
  return head_block(geometry_, d_model_, {p.name, p.value->rows(), p.value->cols()}, head);
}

std::string LayerParameters::of_head(std::string_view name, int head) const {
  const Named* p = find_named(name);
  return p != nullptr && block(*p, head) ? fmt::format("{}_{}", name, head) : std::string(name);
}

std::string LayerParameters::projection(const std::string& rows, HeadPart part, int head,
                                        const std::string& columns) const {
  std::string formula = scheme_of(geometry_).formula(*this, part, rows, head);
  if (!columns.empty()) formula = fmt::format("({}){}", formula, columns);
  if (part == HeadPart::kValues) return formula;
  return query_key_scheme_of(geometry_).formula(part, std::move(formula));
}

}  // namespace mh
