// The settings of `multihead trace`: one struct for each kind of layer that it traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/base/enum_names.h"
#include "multihead/nn/positions.h"
#include "multihead/text/text_languages.h"

namespace mh::cli {

struct ModelLayerSettings {
  std::string text, target_text, attention;
  TextLanguages languages;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "A layer of a model";
    v("text", text, {}, {.group = kGroup, .help = "Sentence that the model reads"});
    v("target_text", target_text, {},
      {.group = kGroup,
       .help = "Translation that the decoder reads",
       .otherwise = "the greedy one",
       .rare = true});
    v("attention", attention, {},
      {.group = kGroup,
       .help = "Attention layer of the model, as multihead info lists them",
       .otherwise = "the first",
       .value = "ATTENTION"});
    languages.visit(v);
  }
};

struct OwnLayerSettings {
  std::string weights, input, memory, mask;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "A layer of your own";
    v("weights", weights, {},
      {.group = kGroup,
       .help = "Your own layer: a .safetensors file with w_q, w_k, w_v, w_o and perhaps b_q, ..., or a "
               "folder of such .npy files",
       .value = "DIR|FILE"});
    v("input", input, {},
      {.group = kGroup, .help = "Input of that layer: a .npy file [tokens, d_model]", .value = "FILE"});
    v("memory", memory, {},
      {.group = kGroup,
       .help = "Rows that the queries read in cross-attention: a .npy file [keys, d_model]",
       .rare = true,
       .value = "FILE"});
    v("mask", mask, {},
      {.group = kGroup,
       .help = "Mask: a .npy file [tokens, keys] of booleans or numbers; a query reads a key where it is "
               "true or not 0",
       .rare = true,
       .value = "FILE"});
  }
};

/// But for its heads, which are LayerSettings.
struct RandomLayerSettings {
  int64_t tokens = 4;
  std::optional<int64_t> keys;
  bool causal = false;  // of a layer of one's own, too
  Positions positions = Positions::kNone;
  uint64_t seed = 1;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "A random layer";
    constexpr int64_t kMostTokens = 4096;
    v("causal", causal, {},
      {.group = kGroup, .help = "Causal mask: a token reads the tokens up to its own position"});
    v("tokens", tokens, {.low = 1, .high = kMostTokens},
      {.group = kGroup, .help = "Tokens that a random layer reads"});
    v("keys", keys, {.low = 1, .high = kMostTokens},
      {.group = kGroup,
       .help = "Number of keys, when the tokens read another sequence (cross-attention)",
       .rare = true});
    v("positions", positions,
      {{"none", Positions::kNone},
       {"rotary", Positions::kRotary},
       {"alibi", Positions::kAlibi},
       {"t5", Positions::kT5},
       {"shaw", Positions::kShaw},
       {"disentangled", Positions::kDisentangled}},
      {.group = kGroup, .help = "Positional encoding of a random layer", .rare = true});
    v("seed", seed, {},
      {.group = kGroup, .help = "Seed of a random layer's weights and input", .rare = true});
  }
};

}  // namespace mh::cli
