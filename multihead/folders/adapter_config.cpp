#include "multihead/folders/adapter_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/strict_json.h"
#include "multihead/text/json_node.h"

namespace mh {
namespace {

bool ends_with_module(std::string_view module, std::string_view end) {
  return module == end || (module.size() > end.size() && module.ends_with(end) &&
                           module[module.size() - end.size() - 1] == '.');
}

std::vector<std::string> texts_of(const JsonNode& node) {
  if (node.value().is_string()) return {node.text()};
  std::vector<std::string> texts;
  for (const JsonNode& item : node.items()) texts.push_back(item.text());
  return texts;
}

NamePattern pattern_of(const JsonNode& node, const std::string& pattern) {
  try {
    return NamePattern(pattern);
  } catch (const FormatError& error) {
    node.fail(error.what());
  }
}

ModuleNames modules_of(const JsonNode& node) {
  if (node.value().is_string()) return {.pattern = {pattern_of(node, node.text())}};
  return {.ends = texts_of(node)};
}

double number_of(const JsonNode& node) {
  if (!node.value().is_number())
    node.fail(fmt::format("expected a number, got {}", json_excerpt(node.value())));
  return node.value().get<double>();
}

/// peft lets a pattern begin at any dot of the name. Throws as pattern_of(), quoting what the file has.
NamePattern pattern_from_a_dot(const JsonNode& node, const std::string& pattern) {
  pattern_of(node, pattern);
  return NamePattern(fmt::format("(.*\\.)?({})", pattern));
}

ModuleValues values_of(const JsonNode& root, const char* key) {
  ModuleValues values;
  const auto found = root.find(key);
  if (!found) return values;
  if (!found->value().is_object()) found->fail("expected an object");
  for (const auto& [pattern, value] : found->value().items())
    values.emplace_back(pattern_from_a_dot(*found, pattern), number_of(found->at(pattern.c_str())));
  return values;
}

const std::string kMerge = "merge the adapter into the weights with peft (merge_and_unload)";

/// init_lora_weights: other ways ("pissa", "olora") take a part of the weights away first.
constexpr const char* kPlainStarts = R"([true, false, "gaussian", "eva", "orthogonal"])";

void refuse_options(const JsonNode& root, std::string_view name) {
  if (const std::string kind = root.at("peft_type").text(); kind != "LORA")
    root.fail(
        fmt::format("peft_type is {}; only adapters of the kind LORA are read: {}", in_quotes(kind), kMerge));
  const KnownKeys keys{.obeyed = {"peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern",
                                  "alpha_pattern", "target_modules", "exclude_modules", "modules_to_save",
                                  "layers_to_transform", "layers_pattern"},
                       .rules = {{.key = "task_type"},
                                 {.key = "auto_mapping"},
                                 {.key = "peft_version"},
                                 {.key = "base_model_name_or_path"},
                                 {.key = "revision"},
                                 {.key = "inference_mode"},
                                 {.key = "lora_dropout"},
                                 {.key = "fan_in_fan_out"},  // the layer says it
                                 {.key = "megatron_core"},
                                 {.key = "runtime_config"},
                                 {.key = "qalora_group_size"},
                                 {.key = "loftq_config"},  // these four belong to an init_lora_weights
                                 {.key = "eva_config"},
                                 {.key = "corda_config"},
                                 {.key = "lora_ga_config"},
                                 {.key = "bias", .harmless = R"(["none"])", .refused = kMerge},
                                 {.key = "init_lora_weights", .harmless = kPlainStarts, .refused = kMerge}}};
  KeyFindings found = keys.look_at(root.value(), name);
  for (const std::string& key : found.unused) {  // an option that is not known may be any
    const auto& value = root.value().at(key);
    const bool off = value == false || (value.is_string() && value.get_ref<const std::string&>().empty()) ||
                     (value.is_structured() && value.empty());
    if (!off)
      found.refused.push_back(
          fmt::format("{} is {}, which is not supported; {}", key, json_excerpt(value), kMerge));
  }
  found.throw_if_refused();
}

/// The layer's number in the name of a module: the first number behind the second dot ("model.layers.3.mlp"), or behind one
/// of the patterns.
std::optional<int32_t> layer_of(std::string_view module, const std::vector<NamePattern>& before) {
  for (size_t at = module.find('.'); at != std::string_view::npos; at = module.find('.', at + 1)) {
    const size_t end = module.find('.', at + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view part = module.substr(at + 1, end - at - 1);
    constexpr size_t kMostDigits = 6;
    if (part.empty() || part.size() > kMostDigits ||
        !std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; }))
      continue;
    const std::string_view above = module.substr(0, at);
    const bool fits = before.empty()
                          ? above.find('.') != std::string_view::npos
                          : std::any_of(before.begin(), before.end(),
                                        [&](const NamePattern& pattern) { return pattern.matches(above); });
    if (fits) return std::stoi(std::string(part));
  }
  return std::nullopt;
}

/// peft takes the first one that matches, in the order of the file.
double value_for(const ModuleValues& values, const char* key, std::string_view module, double otherwise) {
  std::optional<double> found;
  for (const auto& [pattern, value] : values) {
    if (!pattern.matches(module)) continue;
    if (found && *found != value) {
      throw FormatError(fmt::format("{} gives {} and {} to {}; let one pattern match it", key, *found, value,
                                    in_quotes(module, kWholeName)));
    }
    found = value;
  }
  return found.value_or(otherwise);
}

}  // namespace

bool ModuleNames::contain(std::string_view module) const {
  return std::any_of(ends.begin(), ends.end(),
                     [&](const std::string& end) { return ends_with_module(module, end); }) ||
         std::any_of(pattern.begin(), pattern.end(),
                     [&](const NamePattern& whole) { return whole.matches(module); });
}

bool AdapterConfig::adapts(std::string_view module) const {
  if (excluded.contain(module)) return false;
  if (!every_module && !target.contain(module)) return false;
  if (layers.empty() || !target.pattern.empty()) return true;
  const std::optional<int32_t> layer = layer_of(module, before_layer);
  return layer && std::find(layers.begin(), layers.end(), *layer) != layers.end();
}

double AdapterConfig::rank_of(std::string_view module) const {
  return value_for(rank_pattern, "rank_pattern", module, rank);
}

double AdapterConfig::scale_of(std::string_view module) const {
  const double r = rank_of(module);
  return value_for(alpha_pattern, "alpha_pattern", module, alpha) / (root_of_rank ? std::sqrt(r) : r);
}

AdapterConfig read_adapter_config(std::string_view json, std::string_view name) {
  const auto document = parse_json_strictly(json, name);
  const JsonNode root(document, "", name);
  refuse_options(root, name);
  AdapterConfig config;
  if (const auto rank = root.find("r")) config.rank = number_of(*rank);
  if (const auto alpha = root.find("lora_alpha")) config.alpha = number_of(*alpha);
  config.root_of_rank = root.flag("use_rslora", false);
  config.rank_pattern = values_of(root, "rank_pattern");
  config.alpha_pattern = values_of(root, "alpha_pattern");
  const auto target = root.find("target_modules");
  config.every_module = !target || target->value() == "all-linear";
  if (!config.every_module) config.target = modules_of(*target);
  if (const auto excluded = root.find("exclude_modules")) config.excluded = modules_of(*excluded);
  if (const auto saved = root.find("modules_to_save")) config.saved = texts_of(*saved);
  if (const auto layers = root.find("layers_to_transform")) {
    if (layers->value().is_array()) {
      for (const JsonNode& item : layers->items()) config.layers.push_back(item.number());
    } else {
      config.layers.push_back(layers->number());
    }
  }
  if (const auto patterns = root.find("layers_pattern")) {
    for (const std::string& pattern : texts_of(*patterns))
      config.before_layer.push_back(pattern_from_a_dot(*patterns, pattern));
  }
  return config;
}

}  // namespace mh
