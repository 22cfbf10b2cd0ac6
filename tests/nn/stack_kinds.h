// Small stacks of odd sizes that several tests try: their activation is a parameter, for relu has no derivative where it
// bends.
#pragma once

#include <string>
#include <vector>

#include "multihead/nn/stack_config.h"

namespace mh::test {

inline constexpr int kStackWidth = 12;

struct StackKind {
  std::string name;
  StackConfig config;
};

/// With two unequal layers where it has none.
inline StackConfig small_stack(StackConfig config, Activation activation) {
  config.d_model = kStackWidth;
  if (!config.layers.empty()) return config;
  config.layers = {{.self_attention = {.heads = 3}, .feed_forward = {.d_ff = 17, .activation = activation}},
                   {.self_attention = {.heads = 2, .key_heads = 1},
                    .feed_forward = {.d_ff = 13, .activation = activation}}};
  return config;
}

inline const NormConfig kRmsBefore = {
    .kind = NormKind::kRms, .placement = NormPlacement::kPre, .epsilon = 1e-6f};

/// As Llama has it: grouped queries, rotary positions, RMS norm, a gated feed-forward layer, no biases.
inline StackConfig llama_stack() {
  return {
      .name = "decoder",
      .d_model = kStackWidth,
      .layers = std::vector<LayerConfig>(
          2, {.self_attention = {.heads = 6, .key_heads = 2, .biases = Biases::kNone},
              .feed_forward =
                  {.d_ff = 19, .activation = Activation::kSwish, .gated = true, .biases = Biases::kNone}}),
      .mask = StackMask::causal(),
      .positions = Positions::kRotary,
      .rotary = {.base = 500},
      .norm = kRmsBefore};
}

/// As a translator's decoder, with cross-attention.
inline StackConfig crossed_stack(Activation activation) {
  return {.name = "decoder",
          .d_model = kStackWidth,
          .layers = std::vector<LayerConfig>(2, {.self_attention = {.heads = 3},
                                                 .cross_attention = {.heads = 2},
                                                 .feed_forward = {.d_ff = 11, .activation = activation}}),
          .mask = StackMask::causal(),
          .cross_attention = true};
}

}  // namespace mh::test
