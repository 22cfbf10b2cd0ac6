#include "cli/info_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/stored_weights.h"
#include "multihead/base/precision.h"
#include "multihead/models/weight_uses.h"

namespace mh::cli {

using nlohmann::ordered_json;

namespace {

/// How the panels of a form hold numbers.
const char* used_as(const PackedForm& form) {
  switch (form.kind) {
    case PanelKind::kFloat32:
      return "float32";
    case PanelKind::kHalves:
      return form.half == NumberType::kBFloat16 ? "bfloat16" : "float16";
    case PanelKind::kBlocks:
      return "blocks";
    case PanelKind::kChannels:
      return "bytes";
  }
  return "";
}

const char* kernel_name(const PackedForm& form) {
  return name_of(form.kernel, kProductKernelNames);
}

/// Weights that are stored and used alike.
struct UsedAlike {
  WeightUse first;
  int64_t tensors = 0, stored_bytes = 0, bytes = 0;

  bool has(const WeightUse& use) const {
    if (use.stored.type != first.stored.type || use.form.has_value() != first.form.has_value()) return false;
    return !use.form || (use.form->kind == first.form->kind && use.form->half == first.form->half &&
                         use.form->kernel == first.form->kernel);
  }
};

/// What takes most bytes comes first.
std::vector<UsedAlike> used_alike(const std::vector<WeightUse>& uses) {
  std::vector<UsedAlike> found;
  for (const WeightUse& use : uses) {
    auto alike =
        std::find_if(found.begin(), found.end(), [&](const UsedAlike& known) { return known.has(use); });
    if (alike == found.end()) alike = found.insert(alike, {.first = use});
    ++alike->tensors;
    alike->stored_bytes += use.stored.bytes;
    if (use.form) alike->bytes += use.form->bytes;
  }
  std::stable_sort(found.begin(), found.end(), [](const UsedAlike& a, const UsedAlike& b) {
    return std::pair(a.bytes, a.stored_bytes) > std::pair(b.bytes, b.stored_bytes);
  });
  return found;
}

/// Null for what no file has: it is computed.
ordered_json json_of_type(const StoredAs& stored) {
  return stored.type.empty() ? ordered_json() : ordered_json(stored.type);
}

/// Null where no product reads it.
ordered_json json_of_form(const std::optional<PackedForm>& form) {
  if (!form) return {};
  return {{"used_as", used_as(*form)}, {"kernel", kernel_name(*form)}, {"bytes", form->bytes}};
}

}  // namespace

std::string products_table(const Model& model) {
  std::string text = "products      (what --precision multiplies with on this machine)\n", rest;
  for (const auto& [name, precision] : kPrecisionNames) {
    std::string_view label = name;
    rest.clear();
    for (const UsedAlike& alike : used_alike(weight_uses(model, precision))) {
      const std::string& type = alike.first.stored.type;
      const std::string tensors = fmt::format("{} {}", alike.tensors, type.empty() ? "computed" : type);
      if (!alike.first.form) {
        rest += fmt::format("  {:<12}{}, {}\n", rest.empty() ? "none" : "", tensors,
                            bytes_text(alike.stored_bytes));
        continue;
      }
      text += fmt::format("  {:<12}{}, {}: {} as {}, by {}\n", std::exchange(label, ""), tensors,
                          bytes_text(alike.stored_bytes), bytes_text(alike.bytes), used_as(*alike.first.form),
                          kernel_name(*alike.first.form));
    }
  }
  return text + rest;
}

void describe_products(const Model& model, ordered_json& json) {
  std::vector<std::vector<WeightUse>> uses;
  ordered_json& products = json["products"] = ordered_json::object();
  for (const auto& [name, precision] : kPrecisionNames) {
    uses.push_back(weight_uses(model, precision));
    ordered_json& of_precision = products[name] = ordered_json::array();
    for (const UsedAlike& alike : used_alike(uses.back())) {
      if (!alike.first.form) continue;
      of_precision.push_back({{"stored_as", json_of_type(alike.first.stored)},
                              {"tensors", alike.tensors},
                              {"stored_bytes", alike.stored_bytes},
                              {"used_as", used_as(*alike.first.form)},
                              {"kernel", kernel_name(*alike.first.form)},
                              {"bytes", alike.bytes}});
    }
  }
  ordered_json& tensors = json["tensors"] = ordered_json::array();
  for (size_t i = 0; i < uses[0].size(); ++i) {
    const WeightUse& one = uses[0][i];
    ordered_json tensor{{"name", one.name},
                        {"shape", {one.rows, one.cols}},
                        {"stored_as", json_of_type(one.stored)},
                        {"stored_bytes", one.stored.bytes}};
    auto of = uses.begin();
    for (const auto& [name, precision] : kPrecisionNames) tensor[name] = json_of_form((*of++)[i].form);
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace mh::cli
