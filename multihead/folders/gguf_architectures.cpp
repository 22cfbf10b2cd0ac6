#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/gguf_architecture.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using nlohmann::ordered_json;

// What Hugging Face's modules are called in GGUF (gguf's constants.py, MODEL_TENSOR).
constexpr std::array kMostModules = {
    TensorName{"embed_tokens", "token_embd"},
    TensorName{"norm", "output_norm"},
    TensorName{"lm_head", "output"},
    TensorName{"layers.#.input_layernorm", "blk.#.attn_norm"},
    TensorName{"layers.#.self_attn.q_proj", "blk.#.attn_q"},
    TensorName{"layers.#.self_attn.k_proj", "blk.#.attn_k"},
    TensorName{"layers.#.self_attn.v_proj", "blk.#.attn_v"},
    TensorName{"layers.#.self_attn.qkv_proj", "blk.#.attn_qkv"},
    TensorName{"layers.#.self_attn.o_proj", "blk.#.attn_output"},
    TensorName{"layers.#.self_attn.q_norm", "blk.#.attn_q_norm"},
    TensorName{"layers.#.self_attn.k_norm", "blk.#.attn_k_norm"},
    TensorName{"layers.#.mlp.gate_proj", "blk.#.ffn_gate"},
    TensorName{"layers.#.mlp.up_proj", "blk.#.ffn_up"},
    TensorName{"layers.#.mlp.gate_up_proj", "blk.#.ffn_up"},
    TensorName{"layers.#.mlp.down_proj", "blk.#.ffn_down"},
    TensorName{"layers.#.pre_feedforward_layernorm", "blk.#.ffn_norm"},
    TensorName{"layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm"},
};
/// The norm behind the attention is before the feed-forward layer, or before the sum.
constexpr std::array kNormBeforeFeedForward = {
    TensorName{"layers.#.post_attention_layernorm", "blk.#.ffn_norm"}};
constexpr std::array kNormBeforeSum = {
    TensorName{"layers.#.post_attention_layernorm", "blk.#.post_attention_norm"}};
constexpr std::array kNeoxModules = {
    TensorName{"embed_in", "token_embd"},
    TensorName{"final_layer_norm", "output_norm"},
    TensorName{"embed_out", "output"},
    TensorName{"layers.#.post_attention_layernorm", "blk.#.ffn_norm"},
    TensorName{"layers.#.attention.query_key_value", "blk.#.attn_qkv"},
    TensorName{"layers.#.attention.dense", "blk.#.attn_output"},
    TensorName{"layers.#.mlp.dense_h_to_4h", "blk.#.ffn_up"},
    TensorName{"layers.#.mlp.dense_4h_to_h", "blk.#.ffn_down"},
};

constexpr std::array kT5Modules = {
    TensorName{"shared", "token_embd"},
    TensorName{"encoder.final_layer_norm", "enc.output_norm"},
    TensorName{"encoder.block.#.layer.0.layer_norm", "enc.blk.#.attn_norm"},
    TensorName{"encoder.block.#.layer.0.SelfAttention.q", "enc.blk.#.attn_q"},
    TensorName{"encoder.block.#.layer.0.SelfAttention.k", "enc.blk.#.attn_k"},
    TensorName{"encoder.block.#.layer.0.SelfAttention.v", "enc.blk.#.attn_v"},
    TensorName{"encoder.block.#.layer.0.SelfAttention.o", "enc.blk.#.attn_o"},
    TensorName{"encoder.block.#.layer.0.SelfAttention.relative_attention_bias", "enc.blk.#.attn_rel_b"},
    TensorName{"encoder.block.#.layer.1.layer_norm", "enc.blk.#.ffn_norm"},
    TensorName{"encoder.block.#.layer.1.DenseReluDense.wi", "enc.blk.#.ffn_up"},
    TensorName{"encoder.block.#.layer.1.DenseReluDense.wi_0", "enc.blk.#.ffn_gate"},
    TensorName{"encoder.block.#.layer.1.DenseReluDense.wi_1", "enc.blk.#.ffn_up"},
    TensorName{"encoder.block.#.layer.1.DenseReluDense.wo", "enc.blk.#.ffn_down"},
    TensorName{"decoder.final_layer_norm", "dec.output_norm"},
    TensorName{"decoder.block.#.layer.0.layer_norm", "dec.blk.#.attn_norm"},
    TensorName{"decoder.block.#.layer.0.SelfAttention.q", "dec.blk.#.attn_q"},
    TensorName{"decoder.block.#.layer.0.SelfAttention.k", "dec.blk.#.attn_k"},
    TensorName{"decoder.block.#.layer.0.SelfAttention.v", "dec.blk.#.attn_v"},
    TensorName{"decoder.block.#.layer.0.SelfAttention.o", "dec.blk.#.attn_o"},
    TensorName{"decoder.block.#.layer.0.SelfAttention.relative_attention_bias", "dec.blk.#.attn_rel_b"},
    TensorName{"decoder.block.#.layer.1.layer_norm", "dec.blk.#.cross_attn_norm"},
    TensorName{"decoder.block.#.layer.1.EncDecAttention.q", "dec.blk.#.cross_attn_q"},
    TensorName{"decoder.block.#.layer.1.EncDecAttention.k", "dec.blk.#.cross_attn_k"},
    TensorName{"decoder.block.#.layer.1.EncDecAttention.v", "dec.blk.#.cross_attn_v"},
    TensorName{"decoder.block.#.layer.1.EncDecAttention.o", "dec.blk.#.cross_attn_o"},
    TensorName{"decoder.block.#.layer.2.layer_norm", "dec.blk.#.ffn_norm"},
    TensorName{"decoder.block.#.layer.2.DenseReluDense.wi", "dec.blk.#.ffn_up"},
    TensorName{"decoder.block.#.layer.2.DenseReluDense.wi_0", "dec.blk.#.ffn_gate"},
    TensorName{"decoder.block.#.layer.2.DenseReluDense.wi_1", "dec.blk.#.ffn_up"},
    TensorName{"decoder.block.#.layer.2.DenseReluDense.wo", "dec.blk.#.ffn_down"},
};

constexpr const char* kQueryBias = "blk.0.attn_q.bias";
constexpr int kMostPositions = 1 << 20;
constexpr auto kNumber = GgufField::Kind::kNumber, kFlag = GgufField::Kind::kFlag;

constexpr std::array kGemma2Fields = {
    GgufField{"attention.sliding_window", "sliding_window", GgufField::Kind::kInteger, 1, kMostPositions,
              4096},
    GgufField{"attn_logit_softcapping", "attn_logit_softcapping", kNumber, 1e-3, 1e6, 50},
    GgufField{"final_logit_softcapping", "final_logit_softcapping", kNumber, 1e-3, 1e6, 30}};
constexpr std::array kGemma3Fields = {
    GgufField{"attention.sliding_window", "sliding_window", GgufField::Kind::kInteger, 1, kMostPositions},
    GgufField{"final_logit_softcapping", "final_logit_softcapping", kNumber, 1e-3, 1e6},
    GgufField{"rope.freq_base_swa", "rope_local_base_freq", kNumber, 1e-3, 1e12, 10000}};
constexpr std::array kPhi3Fields = {GgufField{"rope.scaling.original_context_length",
                                              "original_max_position_embeddings", GgufField::Kind::kInteger,
                                              1, kMostPositions}};
constexpr std::array kNeoxFields = {
    GgufField{"use_parallel_residual", "use_parallel_residual", kFlag, 0, 0, 1}};

constexpr std::array kPhi3Keys = {"attention.sliding_window", "rope.scaling.attn_factor"};
constexpr std::array kT5Keys = {"decoder_block_count", "decoder_start_token_id",
                                "attention.relative_buckets_count", "attention.layer_norm_epsilon"};
constexpr std::array kWindowKey = {"attention.sliding_window"};

/// "full_attention" at each layer whose number, from 1, is a multiple of the period, windows at the others.
void add_layer_types(ordered_json& config, int period) {
  ordered_json types = ordered_json::array();
  for (int64_t layer = 1; layer <= config["num_hidden_layers"].get<int64_t>(); ++layer)
    types.push_back(layer % period == 0 ? "full_attention" : "sliding_attention");
  config["layer_types"] = std::move(types);
}

/// Scores are divided by the root of it: the size of a head, but in the 27B models d_model / heads, as in llama.cpp, which knows
/// them by their layers.
void add_query_scalar(ordered_json& config, int64_t layers_of_27b) {
  const bool largest = config["num_hidden_layers"] == layers_of_27b;
  config["query_pre_attn_scalar"] =
      largest ? config["hidden_size"].get<int64_t>() / config["num_attention_heads"].get<int64_t>()
              : config["head_dim"].get<int64_t>();
}

void finish_gemma2(const GgufFile&, const GgufArchitecture&, ordered_json& config) {
  add_query_scalar(config, 46);
  add_layer_types(config, 2);
}

void finish_gemma3(const GgufFile&, const GgufArchitecture&, ordered_json& config) {
  add_query_scalar(config, 62);
  const bool windows = config.contains("sliding_window");
  if (!windows) config["sliding_window"] = nullptr;
  add_layer_types(config, windows ? 6 : 1);
}

/// A window of 0 is none.
void finish_phi3(const GgufFile& file, const GgufArchitecture& architecture, ordered_json& config) {
  const auto window = file.integer(architecture.key("attention.sliding_window"), 0, kMostPositions);
  config["sliding_window"] = window.value_or(0) > 0 ? ordered_json(*window) : ordered_json();
}

/// Olmo 3 has the same name.
void finish_olmo2(const GgufFile& file, const GgufArchitecture& architecture, ordered_json&) {
  const std::string key = architecture.key("attention.sliding_window");
  if (file.integer(key, 0, kMostPositions).value_or(0) > 0)
    throw FormatError(
        fmt::format("{}: \"{}\" is {}; layers with windows, as Olmo 3 has them, are not supported here",
                    file.name(), key, file.described(key)));
}

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama",
     .model_type = "llama",
     .class_name = "LlamaForCausalLM",
     .modules = kNormBeforeFeedForward,
     .rows = GgufArchitecture::Rows::kNeighbours,
     .attention_bias = kQueryBias,
     .feed_forward_bias = "blk.0.ffn_gate.bias"},
    {.name = "qwen2",
     .model_type = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .modules = kNormBeforeFeedForward,
     .head_size = false},
    {.name = "qwen3",
     .model_type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .modules = kNormBeforeFeedForward,
     .attention_bias = kQueryBias},
    {.name = "gemma2",
     .model_type = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .modules = kNormBeforeSum,
     .norms_plus_one = true,
     .activation_field = "hidden_activation",
     .activation = "gelu_pytorch_tanh",
     .attention_bias = kQueryBias,
     .fields = kGemma2Fields,
     .finish = finish_gemma2},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .modules = kNormBeforeSum,
     .norms_plus_one = true,
     .activation_field = "hidden_activation",
     .activation = "gelu_pytorch_tanh",
     .attention_bias = kQueryBias,
     .fields = kGemma3Fields,
     .finish = finish_gemma3},
    {.name = "phi3",
     .model_type = "phi3",
     .class_name = "Phi3ForCausalLM",
     .modules = kNormBeforeFeedForward,
     .rope_factors = true,
     .head_size = false,
     .rotated_share_field = "partial_rotary_factor",
     .fields = kPhi3Fields,
     .finish = finish_phi3,
     .finish_keys = kPhi3Keys},
    {.name = "gptneox",
     .model_type = "gpt_neox",
     .class_name = "GPTNeoXForCausalLM",
     .modules = kNeoxModules,
     .rows = GgufArchitecture::Rows::kByPart,
     .epsilon_key = "attention.layer_norm_epsilon",
     .epsilon_field = "layer_norm_eps",
     .activation = "gelu",
     .key_heads = false,
     .head_size = false,
     .rope_base_field = "rotary_emb_base",
     .rotated_share_field = "rotary_pct",
     .attention_bias = "blk.0.attn_qkv.bias",
     .fields = kNeoxFields},
    {.name = "olmo2",
     .model_type = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .modules = kNormBeforeSum,
     .head_size = false,
     .attention_bias = kQueryBias,
     .finish = finish_olmo2,
     .finish_keys = kWindowKey},
    {.name = "t5",
     .model_type = "t5",
     .class_name = "T5ForConditionalGeneration",
     .modules = kT5Modules,
     .config = GgufArchitecture::Config::kT5,
     .finish_keys = kT5Keys},
};

constexpr const char* kArchitectureKey = "general.architecture";

[[noreturn]] void refuse(const GgufFile& file, std::string_view architecture) {
  std::vector<std::string> read;
  for (const GgufArchitecture& known : kArchitectures) {
    if (known.is_read()) read.push_back(fmt::format("\"{}\"", known.name));
  }
  throw FormatError(fmt::format("{}: \"{}\": expected one that is read, {}; got {}", file.name(),
                                kArchitectureKey, fmt::join(read, ", "),
                                json_excerpt(std::string(architecture))));
}

}  // namespace

std::string GgufArchitecture::key(std::string_view of) const {
  return fmt::format("{}.{}", name, of);
}

std::string GgufArchitecture::tensor(std::string_view theirs) const {
  std::string_view stem = theirs;
  for (const std::string_view prefix : {"model.", "gpt_neox."}) {
    if (stem.starts_with(prefix)) stem.remove_prefix(prefix.size());
  }
  const size_t dot = std::min(stem.rfind('.'), stem.size());
  const std::string_view module = stem.substr(0, dot), kind = stem.substr(dot);
  for (const auto table : {modules, std::span<const TensorName>(kMostModules)}) {
    std::string found = place_in(table, module).names.front();
    if (found != module) return found.append(kind);
  }
  return std::string(theirs);
}

bool GgufArchitecture::is_read() const {
  const auto all = families();
  return std::any_of(all.begin(), all.end(),
                     [&](const Family* family) { return family->model_type == model_type; });
}

std::span<const GgufArchitecture> gguf_architectures() {
  return kArchitectures;
}

const GgufArchitecture& gguf_architecture(const GgufFile& file) {
  const auto name = file.text(kArchitectureKey);
  if (!name) throw FormatError(fmt::format("{}: \"{}\" is missing", file.name(), kArchitectureKey));
  for (const GgufArchitecture& known : kArchitectures) {
    if (known.name == *name) return known;
  }
  refuse(file, *name);
}

void refuse_unread_architecture(const GgufFile& file) {
  if (const GgufArchitecture& found = gguf_architecture(file); !found.is_read()) refuse(file, found.name);
}

}  // namespace mh
