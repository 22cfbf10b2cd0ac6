#include "multihead/folders/families/llama_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

/// As Phi3Config has it: "yarn" stood for "longrope", and there are no others.
void expect_longrope(RopeFields& rope, std::vector<std::string>& wrong) {
  std::optional<RopeType>& type = rope.kind ? rope.kind : rope.older_kind;
  if (type == RopeType::kYarn) type = RopeType::kLongRope;
  if (!type || type == RopeType::kDefault || type == RopeType::kLongRope) return;
  wrong.push_back(fmt::format("rope_type is \"{}\"; expected \"default\" or \"longrope\"",
                              name_of(*type, kRopeTypeNames)));
}

/// The positions of all layers.
RopePositions rope_of(const LlamaKind& kind, const LlamaFields& f, DecoderDraft& draft) {
  if (f.rope && f.older_rope) expect_equal(*f.rope, *f.older_rope, draft.wrong);
  RopeFields rope = f.rope ? *f.rope : f.older_rope.value_or(RopeFields{});
  if (kind.longrope_alone) expect_longrope(rope, draft.wrong);
  return positions_of(rope,
                      {.base = f.base.value_or(10000),
                       .d_head = f.d_head.value_or(f.d_model / f.heads),
                       .rotated_share = f.rotated_share.value_or(1),
                       .all_turn = !kind.partial_rotary,
                       .max_positions = f.positions,
                       .original_positions = f.original_positions},
                      draft.wrong, draft.remarks);
}

/// Which layers have a window.
std::vector<bool> windows_of(const LlamaKind& kind, const LlamaFields& f) {
  using Window = LlamaKind::Window;
  const auto layers = static_cast<size_t>(f.layers);
  std::vector<bool> windows(layers, kind.window == Window::kAllLayers && f.window);
  if (kind.window != Window::kAsAsked || !f.window || !f.uses_window) return windows;
  for (size_t i = 0; i < layers; ++i) {
    windows[i] = has_window(f.layer_types, i, std::cmp_greater_equal(i, f.layers_before_windows));
  }
  return windows;
}

/// layer_types must say what the family does.
void check_windows(const LlamaKind& kind, const LlamaFields& f, std::vector<std::string>& wrong) {
  check_layer_types(f.layer_types, f.layers, wrong);
  if (!f.layer_types || kind.window == LlamaKind::Window::kOwn) return;
  if (kind.window == LlamaKind::Window::kAsAsked) {
    if (names_windows(f.layer_types) && !(f.uses_window && f.window))
      wrong.emplace_back(
          "layer_types names \"sliding_attention\", but use_sliding_window and sliding_window give no "
          "window");
    return;
  }
  const std::vector<bool> windows = windows_of(kind, f);
  for (size_t i = 0; i < windows.size(); ++i) {
    if (has_window(f.layer_types, i, windows[i]) == windows[i]) continue;
    wrong.push_back(fmt::format(
        "layer_types says of layer {} that it has {} window; expected the same of all layers, "
        "of model_type \"{}\" {}",
        i, windows[i] ? "no" : "a", kind.model_type, windows[i] ? "with sliding_window" : "without windows"));
    return;
  }
}

/// config: decoder_config(f).
void become_llama(CausalConfig& config, const LlamaKind& kind, const LlamaFields& f,
                  const RopePositions& rope) {
  const auto biases = [](bool has) { return has ? Biases::kAll : Biases::kNone; };
  turn(config, rope);
  config.stack.norm.kind = NormKind::kRms;
  config.stack.norm.placement = kind.norms;
  if (!kind.residual_dropout) config.stack.dropout.residual = 0;
  config.stack.layers.assign(
      static_cast<size_t>(f.layers),
      {.self_attention = {.heads = f.heads,
                          .d_key = f.d_head.value_or(0),
                          .key_heads = f.key_heads.value_or(0),
                          .query_key_norm = kind.query_key_norm,
                          .biases = kind.attention_biases.value_or(biases(f.attention_bias))},
       .feed_forward = {.d_ff = f.d_ff,
                        .activation = f.activation,
                        .gated = true,
                        .biases = biases(kind.feed_forward_biases && f.feed_forward_bias)}});
  const std::vector<bool> windows = windows_of(kind, f);
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i]) config.stack.layers[i].mask = StackMask::sliding_window(*f.window);
  }
}

constexpr std::array kLlamaNames = {
    TensorName{"embedding", "embed_tokens.weight"},
    TensorName{"decoder.final_norm.gain", "norm.weight", kOneRow},
    TensorName{"decoder.#.self_attention_norm.gain", "layers.#.input_layernorm.weight", kOneRow},
    TensorName{"decoder.#.self_attention.w_q", "layers.#.self_attn.q_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_q", "layers.#.self_attn.q_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_k", "layers.#.self_attn.k_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_k", "layers.#.self_attn.k_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_v", "layers.#.self_attn.v_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_v", "layers.#.self_attn.v_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_o", "layers.#.self_attn.o_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_o", "layers.#.self_attn.o_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.query_norm", "layers.#.self_attn.q_norm.weight", kOneRow},
    TensorName{"decoder.#.self_attention.key_norm", "layers.#.self_attn.k_norm.weight", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.gain", "layers.#.post_attention_layernorm.weight", kOneRow},
    TensorName{"decoder.#.feed_forward.w_gate", "layers.#.mlp.gate_proj.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_gate", "layers.#.mlp.gate_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_1", "layers.#.mlp.up_proj.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_1", "layers.#.mlp.up_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_2", "layers.#.mlp.down_proj.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_2", "layers.#.mlp.down_proj.bias", kOneRow},
};
constexpr std::array<std::string_view, 1> kLlamaNoWeights = {
    ".rotary_emb.inv_freq"};  // that older versions saved

std::map<std::string, int32_t> dividing_heads(const HeadGeometry& heads, int32_t d_model) {
  if (d_model % heads.heads != 0)
    throw UsageError(no_divisor("num_attention_heads", heads.heads, kDecoderFields.d_model, d_model));
  return grouped_heads(heads, d_model);
}

}  // namespace

KnownKeys llama_kind_keys(const LlamaKind& kind, KeyNames obeyed) {
  KnownKeys keys{.obeyed = std::move(obeyed)};
  const auto rule = [&](const KeyRule& of) {
    keys.obeyed.erase(std::string(of.key));
    keys.rules.push_back(of);
  };
  rule({.key = "pretraining_tp"});  // in how many slices a product is computed
  rule({.key = "rope_interleaved", .harmless = "[false]", .refused = "expected pairs of a head's halves"});
  if (kind.positions_by_layer) {
    rule({.key = "partial_rotary_factor"});  // rope_parameters say it of each kind of layers
  } else if (!kind.partial_rotary) {
    rule({.key = "partial_rotary_factor",
          .harmless = "[1]",
          .refused = "expected 1: all numbers of a head turn"});
  }
  if (!kind.residual_dropout) rule({.key = "resid_pdrop"});
  for (const char* kind_of_layer : {"rope_parameters.full_attention", "rope_parameters.sliding_attention"}) {
    if (!kind.positions_by_layer)
      rule(
          {.key = kind_of_layer, .harmless = "[{}]", .refused = "expected the same positions in all layers"});
  }
  // What a family's class has no field for it does not look at.
  if (kind.attention_biases) rule({.key = "attention_bias"});
  if (!kind.feed_forward_biases) rule({.key = "mlp_bias"});
  if (kind.window == LlamaKind::Window::kNone || kind.window == LlamaKind::Window::kAllLayers) {
    rule({.key = "use_sliding_window"});
    rule({.key = "max_window_layers"});
    if (kind.window == LlamaKind::Window::kNone) keys.obeyed.erase("sliding_window");
  }
  return keys.add(causal_keys());
}

DecoderDraft llama_draft(const LlamaKind& kind, LlamaFields& fields, std::string_view name) {
  DecoderDraft draft =
      decoder_draft(fields, {{"bos_token_id", fields.start}, {"eos_token_id", fields.end}}, name);
  const RopePositions rope =
      kind.positions_by_layer ? RopePositions{.longest = fields.positions} : rope_of(kind, fields, draft);
  become_llama(draft.config, kind, fields, rope);
  check_windows(kind, fields, draft.wrong);
  return draft;
}

FolderPlan llama_plan(const LlamaKind& kind, const LlamaFields& fields, DecoderDraft draft,
                      std::string_view json, std::string_view name) {
  if (!fields.causal) see_all(draft);
  const int32_t key_heads = fields.key_heads.value_or(fields.heads);
  if (!fields.d_head && fields.d_model % fields.heads != 0) {
    draft.wrong.push_back(
        no_divisor("num_attention_heads", fields.heads, kDecoderFields.d_model, fields.d_model));
  } else if (fields.heads % key_heads != 0) {
    draft.wrong.push_back(no_divisor("num_key_value_heads", key_heads, "num_attention_heads", fields.heads));
  } else {
    for (std::string& problem : problems_of(draft, kDecoderFields)) draft.wrong.push_back(std::move(problem));
  }
  return decoder_plan({.model_type = kind.model_type,
                       .own = kind.own_tensors,
                       .tensors = kLlamaNames,
                       .no_weights = kLlamaNoWeights},
                      std::move(draft), kDecoderFields, json, name,
                      kind.heads_divide ? dividing_heads : grouped_heads);
}

FolderPlan read_llama_kind(const LlamaKind& kind, const LlamaFields& defaults, std::string_view json,
                           std::string_view name) {
  LlamaFields fields = defaults;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  DecoderDraft draft = llama_draft(kind, fields, name);
  return llama_plan(kind, fields, std::move(draft), json, name);
}

}  // namespace mh
