#include "multihead/nn/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/nn/head_name.h"

namespace mh {

ConstMatrixView ObservedWeights::matrix(int s, int h) const {
  int64_t offset = 0;
  const auto length = [](std::span<const int32_t> offsets, int i) {
    return int64_t{offsets[static_cast<size_t>(i) + 1]} - offsets[static_cast<size_t>(i)];
  };
  for (int r = 0; r < s; ++r) offset += heads * length(query_offsets, r) * length(key_offsets, r);
  const int64_t queries = length(query_offsets, s), keys = length(key_offsets, s);
  return {weights + offset + h * queries * keys, queries, keys};
}

void Interventions::set_gate(const std::string& head, float gate) {
  const HeadName name = parse_head_name(head);
  const auto number = static_cast<size_t>(name.head);
  auto change = std::find_if(changes_.begin(), changes_.end(),
                             [&](const Change& c) { return c.attention == name.attention; });
  if (change == changes_.end()) change = changes_.insert(changes_.end(), {name.attention, {}});
  if (change->gates.size() <= number) change->gates.resize(number + 1, 1.0f);
  change->gates[number] = gate;
}

const Interventions::Change* Interventions::find(std::string_view attention, int heads) const {
  const auto found = std::find_if(changes_.begin(), changes_.end(),
                                  [&](const Change& change) { return change.attention == attention; });
  if (found == changes_.end()) return nullptr;
  if (found->gates.size() > static_cast<size_t>(heads)) {
    throw UsageError(fmt::format("head '{}.{}': {} has {} heads, numbered from 0", attention,
                                 found->gates.size() - 1, attention, heads));
  }
  return &*found;
}

std::span<const float> Interventions::gates(std::string_view attention, int heads, Arena& memory) const {
  const Change* change = find(attention, heads);
  if (change == nullptr) return {};
  const std::span<float> gates = memory.array<float>(heads);
  std::fill(std::copy(change->gates.begin(), change->gates.end(), gates.begin()), gates.end(), 1.0f);
  return gates;
}

std::vector<std::string> Interventions::attentions() const {
  std::vector<std::string> names;
  for (const Change& change : changes_) names.push_back(change.attention);
  return names;
}

Dropout dropout_at(const Context& context, float rate, uint32_t site, const Sequences& rows) {
  if (!context.dropout || rate <= 0) return {};
  return {.rate = rate,
          .stream = dropout_stream(context.dropout->seed, context.dropout->update, site),
          .offsets = rows.ragged->offsets(),
          .sentences = rows.sentences};
}

}  // namespace mh
