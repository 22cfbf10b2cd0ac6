#include "multihead/folders/families/llama_kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

constexpr ConfigNames kLlamaFields = {.vocabulary = "vocab_size",
                                      .d_model = "hidden_size",
                                      .max_positions = "max_position_embeddings",
                                      .pad_id = "pad_token_id",
                                      .eos_id = "eos_token_id",
                                      .start_id = "bos_token_id"};

RotaryOptions rotary_of(const LlamaFields& f, std::vector<std::string>& wrong) {
  if (f.rope && f.older_rope && *f.rope != *f.older_rope)
    wrong.emplace_back(
        "rope_parameters and rope_scaling differ; keep the one that the model was trained with");
  RopeFields rope = f.rope ? *f.rope : f.older_rope.value_or(RopeFields{});
  const auto inside = std::exchange(rope.original_positions,
                                    f.original_positions ? f.original_positions : rope.original_positions);
  if (inside && *inside != *rope.original_positions) {
    wrong.push_back(fmt::format(
        "original_max_position_embeddings is {}, and {} inside of rope_parameters; keep the right one",
        *rope.original_positions, *inside));
  }
  return rotary_of(rope, f.base.value_or(10000), wrong);
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
  if (!f.layer_types) return;
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

CausalConfig llama_config(const LlamaKind& kind, const LlamaFields& f, const RotaryOptions& rotary) {
  const auto biases = [](bool has) { return has ? Biases::kAll : Biases::kNone; };
  CausalConfig config{
      .embedding = {.vocabulary = f.vocabulary, .d_model = f.d_model, .scaled = false},
      .positions = Positions::kRotary,
      .max_positions = f.positions,
      .stack = {.name = "decoder",
                .d_model = f.d_model,
                .mask = StackMask::causal(),
                .positions = Positions::kRotary,
                .rotary = rotary,
                .norm = {.kind = NormKind::kRms, .placement = NormPlacement::kPre, .epsilon = f.epsilon},
                .dropout = {.residual = 0, .weights = f.attention_dropout}},
      .tied = f.tied,
      .pad_id = f.pad.value_or(-1),
      .eos_id = f.end.value_or(-1),
      .start_id = f.start.value_or(-1)};
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
  return config;
}

constexpr TensorPlace::Layout kLinear = TensorPlace::Layout::kTransposed,
                              kOneRow = TensorPlace::Layout::kVector;

constexpr std::array kLlamaNames = {
    TensorName{"embedding", "embed_tokens.weight"},
    TensorName{"decoder.final_norm.gain", "norm.weight", kOneRow},
    TensorName{"decoder.#.self_attention_norm.gain", "layers.#.input_layernorm.weight", kOneRow},
    TensorName{"decoder.#.self_attention.w_q", "layers.#.self_attn.q_proj.weight", kLinear},
    TensorName{"decoder.#.self_attention.b_q", "layers.#.self_attn.q_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_k", "layers.#.self_attn.k_proj.weight", kLinear},
    TensorName{"decoder.#.self_attention.b_k", "layers.#.self_attn.k_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_v", "layers.#.self_attn.v_proj.weight", kLinear},
    TensorName{"decoder.#.self_attention.b_v", "layers.#.self_attn.v_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_o", "layers.#.self_attn.o_proj.weight", kLinear},
    TensorName{"decoder.#.self_attention.b_o", "layers.#.self_attn.o_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.query_norm", "layers.#.self_attn.q_norm.weight", kOneRow},
    TensorName{"decoder.#.self_attention.key_norm", "layers.#.self_attn.k_norm.weight", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.gain", "layers.#.post_attention_layernorm.weight", kOneRow},
    TensorName{"decoder.#.feed_forward.w_gate", "layers.#.mlp.gate_proj.weight", kLinear},
    TensorName{"decoder.#.feed_forward.b_gate", "layers.#.mlp.gate_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_1", "layers.#.mlp.up_proj.weight", kLinear},
    TensorName{"decoder.#.feed_forward.b_1", "layers.#.mlp.up_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_2", "layers.#.mlp.down_proj.weight", kLinear},
    TensorName{"decoder.#.feed_forward.b_2", "layers.#.mlp.down_proj.bias", kOneRow},
};
constexpr const char *kLlamaOutput = "lm_head.weight", *kLlamaEmbedding = "embed_tokens.weight",
                     *kLlamaEmbeddingInside = "model.embed_tokens.weight", *kLlamaScores = "score.";

/// LlamaModel alone, or with a head that sorts texts into classes: no output that predicts a token.
bool is_without_output(const TensorFiles& files) {
  if (files.contains(kLlamaOutput)) return false;
  const auto& tensors = files.tensors();
  return files.contains(kLlamaEmbedding) ||
         std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& tensor) { return tensor.first.starts_with(kLlamaScores); });
}

/// All but the output layer belong to LlamaModel, which LlamaForCausalLM keeps under the name "model".
TensorPlace llama_place(std::string_view parameter) {
  if (parameter == "output") return {.names = {kLlamaOutput}};
  TensorPlace place = place_in(kLlamaNames, parameter);
  place.names.insert(place.names.begin(), "model." + place.names.front());
  return place;
}

}  // namespace

KnownKeys llama_kind_keys(const LlamaKind& kind) {
  KnownKeys keys{.obeyed = keys_of(LlamaFields())};
  const auto rule = [&](const KeyRule& of) {
    keys.obeyed.erase(std::string(of.key));
    keys.rules.push_back(of);
  };
  rule({.key = "pretraining_tp"});  // in how many slices a product is computed
  rule({.key = "rope_interleaved", .harmless = "[false]", .refused = "expected pairs of a head's halves"});
  rule({.key = "partial_rotary_factor",
        .harmless = "[1]",
        .refused = "expected 1: all numbers of a head turn"});
  for (const char* kind_of_layer : {"rope_parameters.full_attention", "rope_parameters.sliding_attention"})
    rule({.key = kind_of_layer, .harmless = "[{}]", .refused = "expected the same positions in all layers"});
  // What a family's class has no field for it does not look at.
  if (kind.attention_biases) rule({.key = "attention_bias"});
  if (!kind.feed_forward_biases) rule({.key = "mlp_bias"});
  if (kind.window != LlamaKind::Window::kAsAsked) {
    rule({.key = "use_sliding_window"});
    rule({.key = "max_window_layers"});
    if (kind.window == LlamaKind::Window::kNone) keys.obeyed.erase("sliding_window");
  }
  return keys.add(causal_keys());
}

FolderPlan read_llama_kind(const LlamaKind& kind, const LlamaFields& defaults, std::string_view json,
                           std::string_view name) {
  LlamaFields fields = defaults;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  std::vector<std::string> wrong, remarks;
  if (std::string line = without_ids_beyond(
          fields.vocabulary, {{"bos_token_id", fields.start}, {"eos_token_id", fields.end}}, name);
      !line.empty())
    remarks.push_back(std::move(line));
  const RotaryOptions rotary = rotary_of(fields, wrong);
  const CausalConfig config = llama_config(kind, fields, rotary);
  check_windows(kind, fields, wrong);
  const int32_t key_heads = fields.key_heads.value_or(fields.heads);
  if (!fields.d_head && fields.d_model % fields.heads != 0) {
    wrong.push_back(no_divisor("num_attention_heads", fields.heads, kLlamaFields.d_model, fields.d_model));
  } else if (fields.heads % key_heads != 0) {
    wrong.push_back(no_divisor("num_key_value_heads", key_heads, "num_attention_heads", fields.heads));
  } else {
    for (std::string& problem : problems_of(config, kLlamaFields)) wrong.push_back(std::move(problem));
  }
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", name, fmt::join(wrong, "; ")));
  return {
      .model_type = std::string(kind.model_type),
      .least_parameters = least_parameters(config),
      .make =
          [config](const TensorFiles& files) {
            CausalConfig all = config;
            all.predicts = config.tied || !is_without_output(files);
            if (has_own_output(files, kLlamaOutput, {kLlamaEmbeddingInside, kLlamaEmbedding}))
              all.tied = false;
            return std::make_unique<CausalModel>(all);
          },
      .place = llama_place,
      .no_weight =
          [tied = config.tied](const std::string& tensor, const TensorFiles&, const Model&, Differences&) {
            // The tied output, and angles that older versions saved.
            return (tied && tensor == kLlamaOutput) || tensor.ends_with(".rotary_emb.inv_freq");
          },
      .other_heads = {kLlamaScores},
      .fields_of_heads = [](const HeadGeometry& heads, int32_t) -> std::map<std::string, int32_t> {
        if (heads.key_heads != heads.value_heads || heads.d_key != heads.d_value)
          throw UsageError("it gives keys and values the same heads");
        return {{"num_attention_heads", heads.heads},
                {"num_key_value_heads", heads.key_heads},
                {"head_dim", heads.d_key}};
      },
      .remarks = std::move(remarks)};
}

}  // namespace mh
