// What config.json says of matrices of integers: "quantization_config" of compressed-tensors.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char *kInt8Method = "compressed-tensors", *kInt8Format = "int-quantized";

[[noreturn]] void refuse_method(std::string_view name, const std::string& what) {
  throw FormatError(
      fmt::format("{}: {}: {}; of quantised weights in safetensors only integers of 8 bits with a scale for "
                  "each row or group are read "
                  "(\"{}\", \"{}\"); take the model in F32, F16 or BF16, or as a .gguf file",
                  name, kQuantisation, what, kInt8Method, kInt8Format));
}

/// Throws unless the field is as expected; where it is missing or null, it must be null there.
void expect_field(const json& object, const char* field, const json& expected, std::string_view path,
                  std::string_view name) {
  const json found = object.is_object() && object.contains(field) ? object.at(field) : json();
  if (found == expected) return;
  refuse_method(name,
                fmt::format("{}{} is {}, not {}", path, field, json_excerpt(found), json_excerpt(expected)));
}

void expect_no_field(const json& object, const char* field, std::string_view path, std::string_view name) {
  if (object.contains(field) && !object.at(field).empty())  // null, [] and {} are empty
    refuse_method(name, fmt::format("{}{} is {}", path, field, json_excerpt(object.at(field))));
}

/// A scale for each row, or for each group of so many numbers of a row.
void expect_strategy(const json& weights, const std::string& path, std::string_view name) {
  const json strategy = weights.contains("strategy") ? weights.at("strategy") : json();
  if (strategy != "group") return expect_field(weights, "strategy", "channel", path, name);
  const json size = weights.contains("group_size") ? weights.at("group_size") : json();
  if (!size.is_number_unsigned() || size == 0)
    refuse_method(name, fmt::format("{}group_size is {}", path, json_excerpt(size)));
}

/// With '.' as itself: what stands between two points is a name of Python or a number.
std::string target_pattern(std::string_view module) {
  std::string pattern = "re:(.*[.])?";
  for (const char c : module) pattern += c == '.' ? "[.]" : std::string(1, c);
  return pattern + "$";
}

}  // namespace

bool says_int8(const json& config, std::string_view name) {
  if (!config.contains(kQuantisation)) return false;
  const json& said = config.at(kQuantisation);
  if (said.empty()) return false;  // null, {}
  expect_field(said, "quant_method", kInt8Method, "", name);
  expect_field(said, "format", kInt8Format, "", name);
  for (const char* field : {"kv_cache_scheme", "sparsity_config", "transform_config"})
    expect_no_field(said, field, "", name);
  const json groups = said.contains("config_groups") ? said.at("config_groups") : json();
  if (!groups.is_object() || groups.empty()) refuse_method(name, "config_groups has no group");
  for (const auto& [group, fields] : groups.items()) {
    const std::string path = fmt::format("{}.", json_excerpt(group));
    if (!fields.is_object())
      refuse_method(name, fmt::format("{} is {}", json_excerpt(group), json_excerpt(fields)));
    for (const char* field : {"input_activations", "output_activations"})
      expect_no_field(fields, field, path, name);
    if (fields.contains("format") && !fields.at("format").is_null())
      expect_field(fields, "format", kInt8Format, path, name);
    const json weights = fields.contains("weights") ? fields.at("weights") : json();
    const std::string of_weights = path + "weights.";
    expect_field(weights, "num_bits", 8, of_weights, name);
    expect_field(weights, "type", "int", of_weights, name);
    expect_field(weights, "symmetric", true, of_weights, name);
    expect_strategy(weights, of_weights, name);
    expect_field(weights, "dynamic", false, of_weights, name);
  }
  return true;
}

std::string with_int8_config(const std::string& config, std::span<const std::string> tensors,
                             std::span<const std::string> prefixes, std::optional<int64_t> group_size) {
  ordered_json targets = ordered_json::array();
  for (std::string_view module : tensors) {
    constexpr std::string_view kWeight = ".weight";
    if (module.ends_with(kWeight)) module.remove_suffix(kWeight.size());
    for (const std::string& prefix : prefixes) {
      if (prefix.empty() || !module.starts_with(prefix)) continue;
      module.remove_prefix(prefix.size());
      break;
    }
    targets.push_back(target_pattern(module));
  }
  ordered_json weights = {{"num_bits", 8},         {"type", "int"},         {"symmetric", true},
                          {"strategy", "channel"}, {"group_size", nullptr}, {"dynamic", false}};
  if (group_size) {
    weights["strategy"] = "group";
    weights["group_size"] = *group_size;
  }
  // Without a format in the group the package takes its own first choice for weights alone, "pack-quantized".
  const ordered_json group = {{"targets", std::move(targets)},
                              {"format", kInt8Format},
                              {"weights", weights},
                              {"input_activations", nullptr},
                              {"output_activations", nullptr}};
  ordered_json document = ordered_json::parse(config);
  document[kQuantisation] = {{"quant_method", kInt8Method},         {"format", kInt8Format},
                             {"quantization_status", "compressed"}, {"config_groups", {{"group_0", group}}},
                             {"ignore", ordered_json::array()},     {"kv_cache_scheme", nullptr}};
  return document.dump(2) + "\n";
}

}  // namespace mh
