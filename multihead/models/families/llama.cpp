// Llama (Touvron et al. 2023; Hugging Face's LlamaForCausalLM), and models of its kind, e.g. SmolLM2: a causal
// decoder with pre-norm layers, RMS norms, rotary positions, gated feed-forward layers (SwiGLU, Shazeer 2020),
// and query heads that share keys and values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>

#include "multihead/base/error.h"
#include "multihead/io/config.h"
#include "multihead/io/strict_json.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/config_checks.h"
#include "multihead/models/families/family.h"
#include "multihead/models/families/names.h"

namespace mh {
namespace {

constexpr EnumNames<RotaryScaling::Kind> kScalingNames = {{"default", RotaryScaling::Kind::kNone},
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
    v("rope_type", kind, kScalingNames);
    v("type", older_kind, kScalingNames);
    v("rope_theta", base, {.low = 1e-3, .high = 1e12});
    v("factor", factor, {.low = 1e-3, .high = 1e6});
    v("low_freq_factor", low_turns, {.low = 1e-3, .high = 1e6});
    v("high_freq_factor", high_turns, {.low = 1e-3, .high = 1e6});
    v("partial_rotary_factor", rotated_share, {.low = 0, .high = 1});
    v("original_max_position_embeddings", original_positions, {.low = 1, .high = 1 << 20});
  }
};

/// Where a key may be missing, the start value is LlamaConfig's default.
struct LlamaFields {
  int32_t vocabulary = 32000, positions = 2048, d_model = 4096, layers = 32, heads = 32, d_ff = 11008;
  std::optional<int32_t> key_heads, d_head;
  Activation activation = Activation::kSwish;
  float epsilon = 1e-6f, attention_dropout = 0;
  bool tied = false, attention_bias = false, feed_forward_bias = false;
  std::optional<double> base;
  std::optional<RopeFields> rope, older_rope;
  std::optional<int32_t> start = 1, end = 2, pad;

  template <class V>
  void visit(V& v) {
    v("vocab_size", vocabulary, {.low = 2, .high = 1 << 24});
    v("max_position_embeddings", positions, {.low = 1, .high = 1 << 20});
    v("hidden_size", d_model, {.low = 1, .high = 1 << 16});
    v("num_hidden_layers", layers, {.low = 1, .high = 1024});
    v("num_attention_heads", heads, {.low = 1, .high = 1024});
    v("num_key_value_heads", key_heads, {.low = 1, .high = 1024});
    v("head_dim", d_head, {.low = 1, .high = kLargestHead});
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("hidden_act", activation, kHuggingFaceActivations);
    v("rms_norm_eps", epsilon, {.low = 1e-30f, .high = 1});
    v("attention_dropout", attention_dropout, {.low = 0, .high = 0.999f});
    v("tie_word_embeddings", tied);
    v("attention_bias", attention_bias);
    v("mlp_bias", feed_forward_bias);
    v("rope_theta", base, {.low = 1e-3, .high = 1e12});
    v("rope_parameters", rope);
    v("rope_scaling", older_rope);
    v("bos_token_id", start, kTokenIds);
    v("eos_token_id", end, kTokenIds);
    v("pad_token_id", pad, kTokenIds);
  }
};

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
  const RopeFields rope = f.rope ? *f.rope : f.older_rope.value_or(RopeFields{});
  RotaryOptions rotary{.base = rope.base.value_or(f.base.value_or(10000))};
  rotary.scaling.kind = rope.kind ? *rope.kind : rope.older_kind.value_or(RotaryScaling::Kind::kNone);
  if (rope.rotated_share.value_or(1) != 1)
    wrong.push_back(fmt::format("partial_rotary_factor is {}; expected 1: all numbers of a head turn",
                                *rope.rotated_share));
  const char* const name = name_of(rotary.scaling.kind, kScalingNames);
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

CausalConfig llama_config(const LlamaFields& f, const RotaryOptions& rotary) {
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
  config.stack.layers.assign(static_cast<size_t>(f.layers),
                             {.self_attention = {.heads = f.heads,
                                                 .d_key = f.d_head.value_or(0),
                                                 .key_heads = f.key_heads.value_or(0),
                                                 .biases = biases(f.attention_bias)},
                              .feed_forward = {.d_ff = f.d_ff,
                                               .activation = f.activation,
                                               .gated = true,
                                               .biases = biases(f.feed_forward_bias)}});
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
    TensorName{"decoder.#.feed_forward_norm.gain", "layers.#.post_attention_layernorm.weight", kOneRow},
    TensorName{"decoder.#.feed_forward.w_gate", "layers.#.mlp.gate_proj.weight", kLinear},
    TensorName{"decoder.#.feed_forward.b_gate", "layers.#.mlp.gate_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_1", "layers.#.mlp.up_proj.weight", kLinear},
    TensorName{"decoder.#.feed_forward.b_1", "layers.#.mlp.up_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_2", "layers.#.mlp.down_proj.weight", kLinear},
    TensorName{"decoder.#.feed_forward.b_2", "layers.#.mlp.down_proj.bias", kOneRow},
};
constexpr const char* kLlamaOutput = "lm_head.weight";

/// All but the output layer belong to LlamaModel, which LlamaForCausalLM keeps under the name "model".
TensorPlace llama_place(std::string_view parameter) {
  if (parameter == "output") return {.names = {kLlamaOutput}};
  TensorPlace place = place_in(kLlamaNames, parameter);
  place.names.insert(place.names.begin(), "model." + place.names.front());
  return place;
}

/// Where eos_token_id is a list, as Llama 3's, of tokens that end a text, the first one becomes the model's.
std::string with_one_end(std::string_view json, std::string_view name) {
  auto document = parse_json_strictly(json, name);
  if (!document.is_object()) return std::string(json);
  if (const auto end = document.find("eos_token_id");
      end != document.end() && end->is_array() && !end->empty())
    *end = nlohmann::json((*end)[0]);
  if (document.contains("quantization_config"))
    throw FormatError(fmt::format(
        "{}: quantization_config: quantised weights in safetensors are not read; expected F32, F16 "
        "or BF16, or take the model as a .gguf file",
        name));
  return document.dump();
}

FolderPlan read_llama(std::string_view json, std::string_view name) {
  LlamaFields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  std::vector<std::string> wrong;
  const CausalConfig config = llama_config(fields, rotary_of(fields, wrong));
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
      .model_type = "llama",
      .least_parameters = least_parameters(config),
      .make = [config](const WeightFiles&) { return std::make_unique<CausalModel>(config); },
      .place = llama_place,
      .no_weight =
          [tied = config.tied](const std::string& tensor, const WeightFiles&, const Model&, Differences&) {
            // The tied output, and angles that older versions saved.
            return (tied && tensor == kLlamaOutput) || tensor.ends_with(".rotary_emb.inv_freq");
          }};
}

}  // namespace

extern const Family kLlamaFamily;
const Family kLlamaFamily = {"llama", "a causal decoder of LlamaForCausalLM", read_llama};

}  // namespace mh
