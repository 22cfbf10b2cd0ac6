// Gemma 2 (Riviere et al. 2024; Hugging Face's Gemma2ForCausalLM) and the text model of Gemma 3 (Kamath et al. 2025;
// Gemma3ForCausalLM): Llama with embeddings times sqrt(d_model), norms of both the input and the output of every sublayer, whose
// gains are stored as w of 1 + w, and layers with a window between those that see the whole text. Gemma 2 caps its scores and its
// logits softly; Gemma 3 norms queries and keys, and its layers with a window have angles of their own.
#include "multihead/folders/families/llama_kind.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace mh {
namespace {

constexpr float kOne = 1;
constexpr std::array kGemmaNames = {
    TensorName{"decoder.final_norm.gain", "norm.weight", kOneRow, 0, 1, kOne},
    TensorName{"decoder.#.self_attention_norm.gain", "layers.#.input_layernorm.weight", kOneRow, 0, 1, kOne},
    TensorName{"decoder.#.self_attention_output_norm.gain", "layers.#.post_attention_layernorm.weight",
               kOneRow, 0, 1, kOne},
    TensorName{"decoder.#.feed_forward_norm.gain", "layers.#.pre_feedforward_layernorm.weight", kOneRow, 0, 1,
               kOne},
    TensorName{"decoder.#.feed_forward_output_norm.gain", "layers.#.post_feedforward_layernorm.weight",
               kOneRow, 0, 1, kOne},
    TensorName{"decoder.#.self_attention.query_norm", "layers.#.self_attn.q_norm.weight", kOneRow, 0, 1,
               kOne},
    TensorName{"decoder.#.self_attention.key_norm", "layers.#.self_attn.k_norm.weight", kOneRow, 0, 1, kOne},
};

constexpr LlamaKind kGemma2 = {.model_type = "gemma2",
                               .norms = NormPlacement::kPreAndOutput,
                               .heads_divide = true,
                               .own_tensors = kGemmaNames,
                               .window = LlamaKind::Window::kOwn};
constexpr LlamaKind kGemma3 = {.model_type = "gemma3_text",
                               .query_key_norm = QueryKeyNorm::kRms,
                               .norms = NormPlacement::kPreAndOutput,
                               .heads_divide = true,
                               .positions_by_layer = true,
                               .own_tensors = kGemmaNames,
                               .window = LlamaKind::Window::kOwn};

/// Where a key may be missing, the start value is that of Gemma2Config and Gemma3TextConfig.
struct GemmaFields : LlamaFields {
  Activation own_activation = Activation::kGeluTanh;
  float scale_of = 256;  // scores are divided by its root
  std::optional<float> score_cap = {}, logit_cap = {};
  int32_t full_every = 2;  // where layer_types is missing, each such layer has no window
  // Of Gemma 3.
  std::optional<RopeOfLayers> rope_of_layers = {};
  /// Whether tokens see those behind them, too, with half of a window on each side.
  std::optional<bool> both_sides = {};
  double near_base = 10000;

  GemmaFields()
      : LlamaFields{.vocabulary = 256000,
                    .positions = 8192,
                    .d_model = 2304,
                    .layers = 26,
                    .heads = 8,
                    .d_ff = 9216,
                    .key_heads = 4,
                    .d_head = 256,
                    .tied = true,
                    .start = 2,
                    .end = 1,
                    .pad = 0,
                    .window = 4096} {}

  template <class V>
  void visit(V& v) {
    LlamaFields::visit(v);
    v("hidden_activation", own_activation, kHuggingFaceActivations);
    v("query_pre_attn_scalar", scale_of, {.low = 1e-6f, .high = 1e9f});
    v("final_logit_softcapping", logit_cap, {.low = 1e-3f, .high = 1e6f});
  }
};

struct Gemma2Fields : GemmaFields {
  Gemma2Fields() {
    score_cap = 50;
    logit_cap = 30;
  }

  template <class V>
  void visit(V& v) {
    GemmaFields::visit(v);
    v("attn_logit_softcapping", score_cap, {.low = 1e-3f, .high = 1e6f});
  }
};

struct Gemma3Fields : GemmaFields {
  Gemma3Fields() {
    vocabulary = 262208;
    positions = 131072;
    base = 1e6;
    full_every = 6;
  }

  template <class V>
  void visit(V& v) {
    GemmaFields::visit(v);
    v("sliding_window_pattern", full_every, {.low = 1, .high = 1 << 20});
    v("rope_parameters", rope_of_layers);
    v("rope_local_base_freq", near_base, {.low = 1e-3, .high = 1e12});
    v("use_bidirectional_attention", both_sides);
  }
};

/// The angles of layers without a window and with one. `rope_scaling`, of older files, counts for the former.
std::pair<RopePositions, RopePositions> positions_of_layers(const GemmaFields& f, DecoderDraft& draft) {
  if (f.rope_of_layers && f.older_rope) expect_equal(f.rope_of_layers->full, *f.older_rope, draft.wrong);
  const RopeOfLayers rope =
      f.rope_of_layers.value_or(RopeOfLayers{.full = f.older_rope.value_or(RopeFields{}), .sliding = {}});
  const auto of = [&](const RopeFields& fields, double base) {
    return positions_of(
        fields,
        {.base = base, .d_head = f.d_head.value_or(256), .all_turn = true, .max_positions = f.positions},
        draft.wrong, draft.remarks);
  };
  return {of(rope.full, *f.base), of(rope.sliding, f.near_base)};
}

FolderPlan read_gemma(const LlamaKind& kind, GemmaFields& fields, std::string_view json,
                      std::string_view name) {
  fields.activation = fields.own_activation;
  // As Gemma3TextConfig makes it: the token itself and half of the others on one side.
  if (fields.both_sides.value_or(false) && fields.window) fields.window = *fields.window / 2 + 1;
  DecoderDraft draft = llama_draft(kind, fields, name);
  CausalConfig& config = draft.config;
  config.embedding.scaled = true;
  config.logit_soft_cap = fields.logit_cap;
  check_window(fields.layer_types, fields.window, draft.wrong);
  RotaryOptions near = config.stack.rotary;
  if (kind.positions_by_layer) {
    const auto [all, windows] = positions_of_layers(fields, draft);
    config.max_positions = std::min(all.longest, windows.longest);
    config.stack.rotary = all.rotary;
    near = windows.rotary;
  }
  for (size_t i = 0; i < config.stack.layers.size(); ++i) {
    LayerConfig& layer = config.stack.layers[i];
    layer.self_attention.scale = 1 / std::sqrt(fields.scale_of);
    layer.self_attention.soft_cap = fields.score_cap;
    if (!fields.window ||
        !has_window(fields.layer_types, i, (i + 1) % static_cast<size_t>(fields.full_every) != 0))
      continue;
    layer.mask = StackMask::sliding_window(*fields.window);
    layer.rotary = near;
  }
  // This window counts the token itself, which that of is_causal false does not.
  if (fields.both_sides.value_or(false) && fields.causal) see_all(draft, 1);
  return llama_plan(kind, fields, std::move(draft), json, name);
}

FolderPlan read_gemma2(std::string_view json, std::string_view name) {
  Gemma2Fields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  return read_gemma(kGemma2, fields, json, name);
}

FolderPlan read_gemma3(std::string_view json, std::string_view name) {
  Gemma3Fields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  return read_gemma(kGemma3, fields, json, name);
}

template <class Fields>
KnownKeys gemma_keys(const LlamaKind& kind) {
  KnownKeys keys = llama_kind_keys(kind, keys_of(Fields()));
  // GemmaMLP has hidden_activation alone, and which layers have windows does not go by Qwen's fields.
  for (const char* key : {"hidden_act", "use_sliding_window", "max_window_layers"}) {
    keys.obeyed.erase(key);
    keys.rules.push_back({.key = key});
  }
  if (!kind.positions_by_layer) return keys;
  // Gemma3Attention does not cap its scores, whatever its configuration says, and reads no pattern of that name.
  for (const char* key : {"attn_logit_softcapping", "_sliding_window_pattern"})
    keys.rules.push_back({.key = key});
  keys.obeyed.erase("original_max_position_embeddings");
  return keys;
}

constexpr OracleAttention kGemmaAttention[] = {{.module = "self_attn",
                                                .queries = "self_attn.q_proj",
                                                .keys = "self_attn.k_proj",
                                                .output = "self_attn.o_proj",
                                                .added = "post_attention_layernorm",
                                                .float32_softmax = true}};
constexpr OracleStack kGemmaStack[] = {
    {.layers = "layers", .states = "norm", .attentions = kGemmaAttention, .second_linear = "mlp.down_proj"}};
constexpr OracleModules kGemmaOracle = {.stacks = kGemmaStack};

}  // namespace

extern const Family kGemma2Family, kGemma3TextFamily;
const Family kGemma2Family = {"gemma2",    "a causal decoder of Gemma2ForCausalLM",
                              read_gemma2, [] { return gemma_keys<Gemma2Fields>(kGemma2); },
                              {},          &kGemmaOracle};
const Family kGemma3TextFamily = {"gemma3_text",
                                  "a causal decoder of Gemma3ForCausalLM",
                                  read_gemma3,
                                  [] { return gemma_keys<Gemma3Fields>(kGemma3); },
                                  {},
                                  &kGemmaOracle};

}  // namespace mh
