#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/suggestions.h"
#include "multihead/folders/families/config_keys.h"
#include "multihead/folders/family.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"

namespace mh {

// THE LIST: a line for each kNAMEFamily that a file of this folder defines.
#define MULTIHEAD_FAMILIES(LINE) \
  LINE(Bart)                     \
  LINE(Bert)                     \
  LINE(Camembert)                \
  LINE(DebertaV2)                \
  LINE(DistilBert)               \
  LINE(Electra)                  \
  LINE(Gemma2)                   \
  LINE(Gemma3Text)               \
  LINE(Gpt2)                     \
  LINE(GptNeo)                   \
  LINE(GptNeox)                  \
  LINE(Llama)                    \
  LINE(M2m100)                   \
  LINE(Marian)                   \
  LINE(Mbart)                    \
  LINE(Mistral)                  \
  LINE(ModernBert)               \
  LINE(Mpnet)                    \
  LINE(Mt5)                      \
  LINE(Multihead)                \
  LINE(NomicBert)                \
  LINE(Olmo2)                    \
  LINE(Opt)                      \
  LINE(Phi)                      \
  LINE(Phi3)                     \
  LINE(Qwen2)                    \
  LINE(Qwen3)                    \
  LINE(Roberta)                  \
  LINE(SmolLm3)                  \
  LINE(T5)                       \
  LINE(Umt5)                     \
  LINE(XlmRoberta)

#define LINE(name) extern const Family k##name##Family;
MULTIHEAD_FAMILIES(LINE)
#undef LINE

std::span<const Family* const> families() {
#define LINE(name) &k##name##Family,
  static constexpr const Family* kFamilies[] = {MULTIHEAD_FAMILIES(LINE)};
#undef LINE
  return kFamilies;
}

const Family* family_named(std::string_view model_type) {
  const auto all = families();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Family* family) { return family->model_type == model_type; });
  return found == all.end() ? nullptr : *found;
}

namespace {

std::vector<OwnHeads> read_own_heads(std::string_view json, std::string_view name) {
  OwnHeadsField fields;
  from_json(fields, json, name, UnknownKeys::kIgnore);
  return fields.heads;
}

/// The family of a config.json.
const Family& family_of(const nlohmann::json& document, std::string_view name) {
  if (!document.is_object())
    throw FormatError(fmt::format("{}: expected an object, got {}", name, json_excerpt(document)));
  const auto found = document.find("model_type");
  if (found == document.end())
    throw FormatError(fmt::format("{}: no \"model_type\"; is it the config.json of a model?", name));
  const std::string type = found->is_string() ? found->get<std::string>() : json_excerpt(*found);
  if (const Family* const named = family_named(type)) return *named;
  std::vector<std::string> known, names;
  for (const Family* family : families()) {
    known.push_back(fmt::format("\"{}\" ({})", family->model_type, family->what));
    names.emplace_back(family->model_type);
  }
  const std::string meant = did_you_mean(type, names);
  throw FormatError(fmt::format("{}: model_type is \"{}\", expected one of {}{}{}", name, type,
                                fmt::join(known, ", "), meant.empty() ? "" : "; ", meant));
}

}  // namespace

std::vector<int64_t> shape_of(TensorPlace::Layout layout, int64_t rows, int64_t cols) {
  switch (layout) {
    case TensorPlace::Layout::kTransposed:
      return {cols, rows};
    case TensorPlace::Layout::kVector:
      return {cols};
    case TensorPlace::Layout::kMatrix:
      break;
  }
  return {rows, cols};
}

std::string with_family_names(std::string_view json, std::string_view name) {
  const auto document = parse_json_strictly(json, name);
  const std::span<const KeyAlias> aliases = family_of(document, name).aliases;
  if (std::none_of(aliases.begin(), aliases.end(),
                   [&](const KeyAlias& a) { return document.contains(a.alias); }))
    return std::string(json);
  auto in_family_names = nlohmann::ordered_json::parse(json);  // whose keys stay in their order
  for (const auto& [alias, field] : aliases) {
    const auto found = document.find(alias), other = document.find(field);
    if (found == document.end()) continue;
    if (other != document.end() && *other != *found) {
      throw FormatError(fmt::format("{}: {} is {}, but {}, which means the same, is {}; keep the right one",
                                    name, alias, json_excerpt(*found), field, json_excerpt(*other)));
    }
    in_family_names.erase(std::string(alias));
    in_family_names[std::string(field)] = *found;
  }
  return in_family_names.dump(2) + "\n";
}

FolderPlan read_plan(std::string_view json, std::string_view name) {
  const auto document = parse_json_strictly(with_family_names(json, name), name);
  const Family& family = family_of(document, name);
  KnownKeys keys = family.keys();
  KeyFindings found = keys.add(keys_of_every_config()).look_at(document, name);
  found.throw_if_refused();
  says_int8(document, name);  // refuses other quantised weights
  const std::string fields = document.dump();
  FolderPlan plan = family.read(fields, name);
  if (document.contains(kOwnHeads)) plan.own_heads = read_own_heads(fields, name);
  if (plan.prunes_heads) {
    plan.pruned_heads = read_pruned_heads(fields, name);
    std::erase(found.unused, "pruned_heads");
  }
  if (!found.unused.empty()) plan.remarks.insert(plan.remarks.begin(), found.remark());
  return plan;
}

}  // namespace mh
