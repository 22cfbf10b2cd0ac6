// How the configurations of Hugging Face say by which angles rotary positions turn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/io/config.h"
#include "multihead/nn/positions.h"

namespace mh {

enum class RopeType { kDefault, kLinear, kLlama3, kYarn, kDynamic, kLongRope };
inline constexpr EnumNames<RopeType> kRopeTypeNames = {
    {"default", RopeType::kDefault}, {"linear", RopeType::kLinear},   {"llama3", RopeType::kLlama3},
    {"yarn", RopeType::kYarn},       {"dynamic", RopeType::kDynamic}, {"longrope", RopeType::kLongRope},
    {"su", RopeType::kLongRope}};  // its name before

/// "rope_parameters", or, before transformers 5, "rope_scaling" with the base beside it.
struct RopeFields {
  std::optional<RopeType> kind, older_kind;
  std::optional<double> base;
  std::optional<double> factor, low_turns, high_turns, rotated_share;
  std::optional<int32_t> original_positions;
  // Of yarn and longrope.
  std::optional<double> amplitude, many_turns, few_turns, amplitude_scale, amplitude_scale_of_all;
  bool whole_pairs = true;
  std::optional<std::vector<double>> short_factors, long_factors;

  bool operator==(const RopeFields&) const = default;

  template <class V>
  void visit(V& v) {
    v("rope_type", kind, kRopeTypeNames);
    v("type", older_kind, kRopeTypeNames);
    v("rope_theta", base, {.low = 1e-3, .high = 1e12});
    v("factor", factor, {.low = 1e-3, .high = 1e6});
    v("low_freq_factor", low_turns, {.low = 1e-3, .high = 1e6});
    v("high_freq_factor", high_turns, {.low = 1e-3, .high = 1e6});
    v("partial_rotary_factor", rotated_share, {.low = 0, .high = 1});
    v("original_max_position_embeddings", original_positions, {.low = 1, .high = 1 << 20});
    v("attention_factor", amplitude, {.low = 1e-3, .high = 1e3});
    v("beta_fast", many_turns, {.low = 1e-3, .high = 1e6});
    v("beta_slow", few_turns, {.low = 1e-3, .high = 1e6});
    v("mscale", amplitude_scale, {.low = 0, .high = 1e3});
    v("mscale_all_dim", amplitude_scale_of_all, {.low = 0, .high = 1e3});
    v("truncate", whole_pairs);
    v("short_factor", short_factors);
    v("long_factor", long_factors);
  }
};

/// "rope_parameters" of families whose layers with a window turn otherwise than those without.
struct RopeOfLayers {
  RopeFields full, sliding;  // null is refused, as transformers does

  template <class V>
  void visit(V& v) {
    v("full_attention", full);
    v("sliding_attention", sliding);
  }
};

/// What else of a configuration counts for its positions.
struct RopeContext {
  double base = 10000;       // where the fields have none
  int32_t d_head = 0;        // numbers of a head
  double rotated_share = 1;  // where the fields have none: of a head's numbers, from the first on
  bool all_turn = false;     // whether another share is wrong
  int32_t max_positions = 0;
  std::optional<int32_t> original_positions = {};  // beside the fields, before theirs
};

/// What they say; `longest`: of texts, at most max_positions.
struct RopePositions {
  RotaryOptions rotary = {};
  int32_t longest = 0;
};

/// Adds to `wrong` that rope_parameters and rope_scaling differ, when they do.
void expect_equal(const RopeFields& rope, const RopeFields& older, std::vector<std::string>& wrong);

/// Adds to `wrong` what does not fit, and to `remarks` what longer texts would need.
RopePositions positions_of(RopeFields rope, const RopeContext& context, std::vector<std::string>& wrong,
                           std::vector<std::string>& remarks);

}  // namespace mh
