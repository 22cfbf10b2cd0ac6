#include "multihead/folders/families/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "multihead/base/error.h"

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

}  // namespace

TensorPlace place_in(std::span<const TensorName> table, std::string_view parameter) {
  for (const TensorName& row : table) {
    std::string_view number;
    if (!follows(row.ours, parameter, number)) continue;
    std::string name(row.theirs);
    if (const size_t mark = name.find('#'); mark != std::string::npos) name.replace(mark, 1, number);
    return {.names = {std::move(name)}, .layout = row.layout, .part = row.part, .parts = row.parts};
  }
  // Heads that the family does not know have our names; older versions wrote the second one.
  return {.names = {std::string(parameter), "(no name for " + std::string(parameter) + ")"}};
}

void check_layer_types(const LayerTypes& types, int32_t layers, std::vector<std::string>& wrong) {
  if (!types) return;
  if (std::ssize(*types) != layers)
    wrong.push_back(
        fmt::format("layer_types has {} entries; expected one for each of {} layers", types->size(), layers));
  for (const std::string& type : *types) {
    if (type == kFullAttention || type == kSlidingAttention) continue;
    wrong.push_back(fmt::format("layer_types names \"{}\"; expected \"{}\" or \"{}\"", type, kFullAttention,
                                kSlidingAttention));
    return;
  }
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
