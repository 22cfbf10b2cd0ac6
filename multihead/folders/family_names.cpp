#include "multihead/folders/family_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "multihead/base/error.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

constexpr std::string_view kFullAttention = "full_attention", kSlidingAttention = "sliding_attention";

/// The digits at # of `pattern` where `name` follows it; empty when it does not. A pattern without # gives
/// "".
bool follows(std::string_view pattern, std::string_view name, std::string_view& number) {
  const size_t mark = pattern.find('#');
  if (mark == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, mark), after = pattern.substr(mark + 1);
  if (!name.starts_with(before) || !name.ends_with(after) || name.size() <= before.size() + after.size())
    return false;
  number = name.substr(before.size(), name.size() - before.size() - after.size());
  return std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// A name of the table, with the family's name of its module.
std::string renamed(std::string_view tensor, std::span<const ModuleName> modules) {
  const size_t dot = tensor.rfind('.');
  const auto module = std::find_if(modules.begin(), modules.end(), [&](const ModuleName& one) {
    return one.in_table == tensor.substr(0, dot);
  });
  return module == modules.end() ? std::string(tensor) : std::string(module->here).append(tensor.substr(dot));
}

}  // namespace

TensorPlace place_in(std::span<const TensorName> table, std::string_view parameter,
                     std::span<const ModuleName> modules) {
  for (const TensorName& row : table) {
    std::string_view number;
    if (!follows(row.ours, parameter, number)) continue;
    std::string name = renamed(row.theirs, modules);
    if (const size_t mark = name.find('#'); mark != std::string::npos) name.replace(mark, 1, number);
    return {.names = {std::move(name)},
            .layout = row.layout,
            .part = row.part,
            .parts = row.parts,
            .offset = row.offset};
  }
  // Heads that the family does not know have our names; older versions wrote the second one.
  return {.names = {std::string(parameter), "(no name for " + std::string(parameter) + ")"}};
}

std::string without_ids_beyond(int32_t vocabulary, std::initializer_list<SpecialId> ids,
                               std::string_view name) {
  KeyFindings beyond{.file = std::string(name)};
  for (const auto& [key, id] : ids) {
    if (!id || *id < vocabulary) continue;
    beyond.unused.push_back(fmt::format("{} {}", key, *id));
    id.reset();
  }
  if (beyond.unused.empty()) return {};
  const std::string where = fmt::format("beyond the vocabulary of {} tokens", vocabulary);
  return beyond.with(fmt::format("is {} and was not used", where),
                     fmt::format("are {} and were not used", where));
}

std::string with_one_end(std::string_view json, std::string_view name) {
  auto document = parse_json_strictly(json, name);
  if (!document.is_object()) return std::string(json);
  if (const auto end = document.find("eos_token_id");
      end != document.end() && end->is_array() && !end->empty())
    *end = nlohmann::json((*end)[0]);
  return document.dump();
}

TensorPlace text_label_place(std::string_view parameter) {
  const bool row = parameter.ends_with(".b");
  const char* const layer = parameter.starts_with("labels.dense.") ? "dense" : "out_proj";
  return {.names = {fmt::format("{}{}.{}", kTextLabelLayers, layer, row ? "bias" : "weight")},
          .layout = row ? TensorPlace::Layout::kVector : TensorPlace::Layout::kTransposed};
}

bool has_own_output(const TensorFiles& files, std::string_view output,
                    std::initializer_list<std::string_view> embeddings) {
  if (!files.contains(output)) return false;
  const auto* const found = std::find_if(embeddings.begin(), embeddings.end(),
                                         [&](std::string_view name) { return files.contains(name); });
  return found != embeddings.end() && !files.same(output, *found);
}

KnownKeys causal_keys() {
  constexpr std::string_view kWhy = "expected a decoder whose tokens see themselves and those before them";
  return {.obeyed = {"token_classification_bias"},  // decoder_plan()
          .rules = {{.key = "is_decoder"},          // it is one, whatever this says
                    {.key = "is_causal", .harmless = "[true]", .refused = kWhy},
                    {.key = "use_bidirectional_attention", .harmless = "[false]", .refused = kWhy},
                    {.key = "bidirectional", .harmless = "[false]", .refused = kWhy}}};
}

void check_layer_types(const LayerTypes& types, int32_t layers, std::vector<std::string>& wrong) {
  if (!types) return;
  if (std::ssize(*types) != layers)
    wrong.push_back(
        fmt::format("layer_types has {} entries; expected one for each layer, num_hidden_layers is {}",
                    types->size(), layers));
  for (const std::string& type : *types) {
    if (type == kFullAttention || type == kSlidingAttention) continue;
    wrong.push_back(fmt::format("layer_types names \"{}\"; expected \"{}\" or \"{}\"", type, kFullAttention,
                                kSlidingAttention));
    return;
  }
}

void check_window(const LayerTypes& types, const std::optional<int32_t>& window,
                  std::vector<std::string>& wrong) {
  if (names_windows(types) && !window)
    wrong.emplace_back("layer_types names \"sliding_attention\", but there is no sliding_window");
}

bool names_windows(const LayerTypes& types) {
  return types && std::find(types->begin(), types->end(), kSlidingAttention) != types->end();
}

bool has_window(const LayerTypes& types, size_t i, bool otherwise) {
  return types ? i < types->size() && (*types)[i] == kSlidingAttention : otherwise;
}

std::map<std::string, int32_t> heads_that_divide(const HeadGeometry& heads, int32_t d_model,
                                                 const std::string& field) {
  if (heads.key_heads != heads.heads || heads.value_heads != heads.heads)
    throw UsageError("it gives each head its own keys and values");
  if (heads.heads * heads.d_key != d_model || heads.d_value != heads.d_key) {
    throw UsageError(
        fmt::format("its heads have d_model / {} columns; {} heads of {} columns make {}, not {}", field,
                    heads.heads, heads.d_key, heads.heads * heads.d_key, d_model));
  }
  return {{field, heads.heads}};
}

}  // namespace mh
