// How the configurations of Hugging Face say by which angles rotary positions turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/io/config.h"
#include "multihead/nn/positions.h"

namespace mh {

inline constexpr EnumNames<RotaryScaling::Kind> kRotaryScalingNames = {
    {"default", RotaryScaling::Kind::kNone},
    {"linear", RotaryScaling::Kind::kLinear},
    {"llama3", RotaryScaling::Kind::kLlama3}};

/// "rope_parameters", or, before transformers 5, "rope_scaling" with the base beside it.
struct RopeFields {
  std::optional<RotaryScaling::Kind> kind, older_kind;
  std::optional<double> base;
  std::optional<double> factor, low_turns, high_turns, rotated_share;
  std::optional<int32_t> original_positions;

  bool operator==(const RopeFields&) const = default;

  template <class V>
  void visit(V& v) {
    v("rope_type", kind, kRotaryScalingNames);
    v("type", older_kind, kRotaryScalingNames);
    v("rope_theta", base, {.low = 1e-3, .high = 1e12});
    v("factor", factor, {.low = 1e-3, .high = 1e6});
    v("low_freq_factor", low_turns, {.low = 1e-3, .high = 1e6});
    v("high_freq_factor", high_turns, {.low = 1e-3, .high = 1e6});
    v("partial_rotary_factor", rotated_share, {.low = 0, .high = 1});
    v("original_max_position_embeddings", original_positions, {.low = 1, .high = 1 << 20});
  }
};

/// Adds to `wrong` what is not done here. base: where the fields have none.
RotaryOptions rotary_of(const RopeFields& rope, double base, std::vector<std::string>& wrong);

}  // namespace mh
