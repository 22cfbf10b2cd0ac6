#include "multihead/nn/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"

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

void Interventions::set_gate(std::string_view heads, float gate) {
  const auto same = [&](const Change& change) { return change.heads.text() == heads; };
  changes_.erase(std::remove_if(changes_.begin(), changes_.end(), same), changes_.end());
  changes_.push_back({HeadPattern(heads), gate});
}

MatrixView Interventions::gates(std::string_view attention, int heads, Arena& memory) const {
  MatrixView gates;
  const auto set = [&](int head, float gate) {
    if (gates.data == nullptr) {
      gates = memory.matrix<float>(1, heads);
      std::fill_n(gates.data, heads, 1.0f);
    }
    gates(0, head) = gate;
  };
  for (const Change& change : changes_) {
    if (const auto& one = change.heads.one()) {
      if (one->attention != attention) continue;
      if (one->head >= heads) {
        throw UsageError(fmt::format("head '{}': {} has {} heads, numbered from 0", change.heads.text(),
                                     attention, heads));
      }
      set(one->head, change.gate);
      continue;
    }
    for (int head = 0; head < heads; ++head) {
      if (change.heads.matches(attention, head)) set(head, change.gate);
    }
  }
  return gates;
}

Dropout dropout_at(const Context& context, float rate, uint32_t site, const Sequences& rows) {
  if (!context.dropout || rate <= 0) return {};
  return {.rate = rate,
          .stream = dropout_stream(context.dropout->seed, context.dropout->update, site),
          .offsets = rows.ragged->offsets(),
          .sentences = rows.sentences};
}

}  // namespace mh
