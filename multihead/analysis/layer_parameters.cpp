#include "multihead/analysis/layer_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mh {

LayerParameters::LayerParameters(const MultiHeadAttention& layer, int d_model)
    : geometry_(layer.geometry()), d_model_(d_model) {
  layer.visit("", [&](const std::string& name, const Parameter& p) {
    all_.push_back({name.substr(1), &p.value.tensor()});
  });
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
  return head_block(geometry_, d_model_, p.name, p.value->rows(), p.value->cols(), head);
}

std::string LayerParameters::projection(const std::string& rows, char letter, int head,
                                        const std::string& part) const {
  const auto named = [&](const std::string& name) {
    const Named* p = find_named(name);
    return p != nullptr && block(*p, head) ? fmt::format("{}_{}", name, head) : name;
  };
  if (geometry_.scores == Scores::kMerged && letter != 'v') {
    if (letter == 'k') return rows;
    return rows + " " + named("w_qk") + (find("c_qk") != nullptr ? " + " + named("c_qk") : "");
  }
  if (geometry_.scores == Scores::kTied && letter == 'k') return projection(rows, 'q', head, part);
  std::string read = rows;
  if (const std::string before = fmt::format("w_before_{}", letter); find(before) != nullptr)
    read = fmt::format("{} {}", rows, before);
  if (geometry_.input.kind != HeadInput::Kind::kWholeRow) {
    const std::vector<int32_t> columns = columns_read(geometry_, d_model_)[static_cast<size_t>(head)];
    const bool run = columns.back() - columns.front() + 1 == static_cast<int32_t>(columns.size());
    read = fmt::format("{}[:, {}]", read == rows ? read : "(" + read + ")",
                       run ? fmt::format("{} ... {}", columns.front(), columns.back())
                           : fmt::format("{}", fmt::join(columns, " ")));
  }
  const std::string weight = fmt::format("w_{}", letter), bias = fmt::format("b_{}", letter);
  std::string formula = read + " " + named(weight);
  if (find(bias) != nullptr) formula += " + " + named(bias);
  if (!part.empty()) formula = fmt::format("({}){}", formula, part);
  if (letter == 'q' && find("mixing") != nullptr)
    formula = fmt::format("({}) * {}", formula, named("mixing"));
  if (geometry_.query_key_norm == QueryKeyNorm::kL2 && letter != 'v') {
    formula = fmt::format("({}) / its length", formula);
    if (letter == 'q') formula = "score_factor " + formula;
  }
  return formula;
}

}  // namespace mh
