#include "multihead/folders/pruned_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "multihead/base/error.h"
#include "multihead/io/strict_json.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {

PrunedHeads read_pruned_heads(std::string_view json, std::string_view name) {
  const nlohmann::json document = parse_json_strictly(json, name);
  PrunedHeads pruned;
  const auto field = document.find("pruned_heads");
  if (field == document.end() || field->is_null()) return pruned;
  const auto refuse = [&](const nlohmann::json& found) {
    throw FormatError(
        fmt::format("{}: pruned_heads: expected layers with lists of heads, such as "
                    "{{\"0\": [1, 5]}}, got {}",
                    name, json_excerpt(found)));
  };
  if (!field->is_object()) refuse(*field);
  for (const auto& [layer, heads] : field->items()) {
    const std::optional<int> number = whole_number_in(layer);
    if (!number) refuse(*field);
    if (!heads.is_array()) refuse(heads);
    std::set<int> gone;
    for (const auto& head : heads) {
      if (!head.is_number_unsigned() || head.get<uint64_t>() > kLargestHeadNumber) refuse(heads);
      if (!gone.insert(head.get<int>()).second) refuse(heads);
    }
    if (!gone.empty()) pruned[*number].assign(gone.begin(), gone.end());
  }
  return pruned;
}

HeadsOfAttentions without_pruned_heads(const Model& model, const PrunedHeads& pruned, std::string_view name) {
  const std::vector<Model::Attention> attentions = model.attentions();
  HeadsOfAttentions left;
  for (const auto& [layer, heads] : pruned) {
    if (layer >= std::ssize(attentions))
      throw FormatError(fmt::format("{}: pruned_heads names layer {}; the model has layers 0 ... {}", name,
                                    layer, attentions.size() - 1));
    const auto& [attention, count, place] = attentions[static_cast<size_t>(layer)];
    if (heads.back() >= count)
      throw FormatError(fmt::format("{}: pruned_heads names head {} of layer {}; it has heads 0 ... {}", name,
                                    heads.back(), layer, count - 1));
    if (std::ssize(heads) == count)
      throw FormatError(
          fmt::format("{}: pruned_heads leaves layer {} no head; expected one at least", name, layer));
    HeadGeometry& g = left[attention] = model.attention(attention).geometry();
    g.heads = g.key_heads = g.value_heads = count - static_cast<int>(heads.size());
  }
  return left;
}

std::optional<PrunedHeads> pruned_heads_after(const PrunedHeads& pruned, const Model& as_read,
                                              const Model& now, std::span<const HeadName> removed) {
  const std::vector<Model::Attention> attentions = as_read.attentions();
  PrunedHeads after;
  for (size_t layer = 0; layer < attentions.size(); ++layer) {
    const auto& [attention, count, place] = attentions[layer];
    const auto found = pruned.find(static_cast<int>(layer));
    const std::set<int> gone_before =
        found == pruned.end() ? std::set<int>() : std::set<int>(found->second.begin(), found->second.end());
    const int all = count + static_cast<int>(gone_before.size());
    std::set<int> gone = gone_before;
    for (int head = 0, number = 0; number < all; ++number) {
      if (gone_before.contains(number)) continue;
      if (std::find(removed.begin(), removed.end(), HeadName{attention, head}) != removed.end())
        gone.insert(number);
      ++head;
    }
    HeadGeometry expected = as_read.attention(attention).geometry();
    expected.heads = expected.key_heads = expected.value_heads = all - static_cast<int>(gone.size());
    const HeadGeometry& g = now.attention(attention).geometry();
    if (g != expected || all * g.d_key != now.facts().d_model || g.d_value != g.d_key) return std::nullopt;
    if (!gone.empty()) after[static_cast<int>(layer)].assign(gone.begin(), gone.end());
  }
  return after;
}

}  // namespace mh
