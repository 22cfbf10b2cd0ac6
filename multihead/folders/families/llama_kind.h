// What the folders of Llama, Mistral, Qwen2, Qwen3, Phi-3, OLMo 2, SmolLM3 and Gemma have in common: a causal decoder with RMS
// norms, rotary positions, gated feed-forward layers (SwiGLU, Shazeer 2020), and query heads that share keys and values. A family
// adds its defaults and in what it differs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/families/decoder_folder.h"
#include "multihead/folders/families/rope_fields.h"
#include "multihead/folders/family.h"
#include "multihead/folders/family_names.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

/// The fields of config.json. Where a key may be missing, the start value is LlamaConfig's default; other families give theirs.
struct LlamaFields {
  int32_t vocabulary = 32000, positions = 2048, d_model = 4096, layers = 32, heads = 32, d_ff = 11008;
  std::optional<int32_t> key_heads = {}, d_head = {};
  Activation activation = Activation::kSwish;
  float epsilon = 1e-6f, attention_dropout = 0, dropout = 0;
  bool tied = false, attention_bias = false, feed_forward_bias = false;
  std::optional<double> base = {}, rotated_share = {};
  std::optional<RopeFields> rope = {}, older_rope = {};
  std::optional<int32_t> original_positions = {};  // beside them, it counts before theirs
  std::optional<int32_t> start = 1, end = 2, pad = {};
  bool causal = true;  // no: tokens see those behind them, too
  // Of windows of keys; families that have none do not look.
  std::optional<int32_t> window = {};
  bool uses_window = false;
  int32_t layers_before_windows = 28;
  std::optional<std::vector<std::string>> layer_types = {};

  template <class V>
  void visit(V& v) {
    visit_decoder(v, *this);
    visit_layers(v, *this);
    v("num_key_value_heads", key_heads, {.low = 1, .high = 1024});
    v("head_dim", d_head, {.low = 1, .high = kLargestHead});
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("hidden_act", activation, kHuggingFaceActivations);
    v("rms_norm_eps", epsilon, {.low = 1e-30f, .high = 1});
    v("resid_pdrop", dropout, {.low = 0, .high = 0.999f});
    v("attention_bias", attention_bias);
    v("mlp_bias", feed_forward_bias);
    v("rope_theta", base, {.low = 1e-3, .high = 1e12});
    v("partial_rotary_factor", rotated_share, {.low = 0, .high = 1});
    v("rope_parameters", rope);
    v("rope_scaling", older_rope);
    v("original_max_position_embeddings", original_positions, {.low = 1, .high = 1 << 20});
    v("sliding_window", window, {.low = 1, .high = 1 << 20});
    v("use_sliding_window", uses_window);
    v("max_window_layers", layers_before_windows, {.low = 0, .high = 1 << 20});
    v("layer_types", layer_types);
    v("is_causal", causal);
  }
};

/// The start values of Qwen2Config and Qwen3Config.
inline LlamaFields qwen_defaults() {
  return {.vocabulary = 151936,
          .positions = 32768,
          .d_ff = 22016,
          .key_heads = 32,
          .start = std::nullopt,
          .end = std::nullopt,
          .window = 4096};
}

/// In what a family differs from the others.
struct LlamaKind {
  std::string_view model_type;
  /// Set: the biases of attentions, which no field of config.json changes; feed-forward layers have none then. Unset: as
  /// attention_bias says.
  std::optional<Biases> attention_biases = {};
  bool feed_forward_biases = false;  // whether mlp_bias says that feed-forward layers have biases
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  NormPlacement norms = NormPlacement::kPre;
  bool partial_rotary = false;    // whether partial_rotary_factor is obeyed; else it must be 1
  bool longrope_alone = false;    // whether no other type than longrope changes the angles
  bool residual_dropout = false;  // whether resid_pdrop is obeyed; else the class does not read it
  /// Whether the class of transformers refuses a number of heads that does not divide hidden_size, though head_dim is given.
  bool heads_divide = false;
  bool positions_by_layer =
      false;  // whether rope_parameters have those of each kind of layers; the family reads them
  std::span<const TensorName> own_tensors = {};  // before Llama's
  enum class Window {
    kNone,
    kAllLayers,  // sliding_window counts for all layers
    kAsAsked,  // it counts for the layers that use_sliding_window and max_window_layers, or layer_types name
    kOwn,      // the family sets them
  };
  Window window = Window::kNone;
};

/// The modules of such a family's class.
inline constexpr OracleAttention kLlamaAttention[] = {{.module = "self_attn",
                                                       .queries = "self_attn.q_proj",
                                                       .keys = "self_attn.k_proj",
                                                       .output = "self_attn.o_proj",
                                                       .float32_softmax = true}};
inline constexpr OracleStack kLlamaStack[] = {
    {.layers = "layers", .states = "norm", .attentions = kLlamaAttention, .second_linear = "mlp.down_proj"}};
inline constexpr OracleModules kLlamaOracle = {.stacks = kLlamaStack};

/// What such a family knows about the keys of config.json.
/// obeyed: the keys of its fields.
KnownKeys llama_kind_keys(const LlamaKind& kind, KeyNames obeyed = keys_of(LlamaFields()));

/// The configuration of these fields, and what is wrong with them.
DecoderDraft llama_draft(const LlamaKind& kind, LlamaFields& fields, std::string_view name);
/// The plan of a draft, which the family may have changed.
FolderPlan llama_plan(const LlamaKind& kind, const LlamaFields& fields, DecoderDraft draft,
                      std::string_view json, std::string_view name);

/// Returns the plan of a config.json. Throws FormatError that starts with `name` and lists what is wrong.
FolderPlan read_llama_kind(const LlamaKind& kind, const LlamaFields& defaults, std::string_view json,
                           std::string_view name);

}  // namespace mh
