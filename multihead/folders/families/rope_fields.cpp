#include "multihead/folders/families/rope_fields.h"

#include <fmt/format.h>

namespace mh {

RotaryOptions rotary_of(const RopeFields& rope, double base, std::vector<std::string>& wrong) {
  RotaryOptions rotary{.base = rope.base.value_or(base)};
  rotary.scaling.kind = rope.kind ? *rope.kind : rope.older_kind.value_or(RotaryScaling::Kind::kNone);
  if (rope.rotated_share.value_or(1) != 1)
    wrong.push_back(fmt::format("partial_rotary_factor is {}; expected 1: all numbers of a head turn",
                                *rope.rotated_share));
  const char* const name = name_of(rotary.scaling.kind, kRotaryScalingNames);
  const auto need = [&](const auto& value, const char* field) {
    if (!value) wrong.push_back(fmt::format("rope_type \"{}\" needs {}", name, field));
    return value.has_value();
  };
  if (rotary.scaling.kind == RotaryScaling::Kind::kNone) return rotary;
  if (need(rope.factor, "factor")) rotary.scaling.factor = *rope.factor;
  if (rotary.scaling.kind == RotaryScaling::Kind::kLinear) return rotary;
  if (need(rope.low_turns, "low_freq_factor")) rotary.scaling.low_turns = *rope.low_turns;
  if (need(rope.high_turns, "high_freq_factor")) rotary.scaling.high_turns = *rope.high_turns;
  if (need(rope.original_positions, "original_max_position_embeddings"))
    rotary.scaling.original_positions = *rope.original_positions;
  if (rotary.scaling.low_turns >= rotary.scaling.high_turns)
    wrong.push_back(fmt::format("low_freq_factor is {}; expected less than high_freq_factor, {}",
                                rotary.scaling.low_turns, rotary.scaling.high_turns));
  return rotary;
}

}  // namespace mh
