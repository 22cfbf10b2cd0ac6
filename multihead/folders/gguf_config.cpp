#include "multihead/folders/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/families/names.h"
#include "multihead/folders/gguf_keys.h"
#include "multihead/io/strict_json.h"
#include "multihead/kernels/rotary.h"

namespace mh {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFrequencies = "rope_freqs.weight";
constexpr TensorPlace::Layout kGgufMatrix = TensorPlace::Layout::kTransposed,
                              kGgufVector = TensorPlace::Layout::kVector;

// The names of the GGUF specification, "Standardized tensor names".
constexpr std::array kGgufNames = {
    TensorName{"embedding", "token_embd.weight"},
    TensorName{"output", "output.weight"},
    TensorName{"decoder.final_norm.gain", "output_norm.weight", kGgufVector},
    TensorName{"decoder.#.self_attention_norm.gain", "blk.#.attn_norm.weight", kGgufVector},
    TensorName{"decoder.#.self_attention.w_q", "blk.#.attn_q.weight", kGgufMatrix},
    TensorName{"decoder.#.self_attention.b_q", "blk.#.attn_q.bias", kGgufVector},
    TensorName{"decoder.#.self_attention.w_k", "blk.#.attn_k.weight", kGgufMatrix},
    TensorName{"decoder.#.self_attention.b_k", "blk.#.attn_k.bias", kGgufVector},
    TensorName{"decoder.#.self_attention.w_v", "blk.#.attn_v.weight", kGgufMatrix},
    TensorName{"decoder.#.self_attention.b_v", "blk.#.attn_v.bias", kGgufVector},
    TensorName{"decoder.#.self_attention.w_o", "blk.#.attn_output.weight", kGgufMatrix},
    TensorName{"decoder.#.self_attention.b_o", "blk.#.attn_output.bias", kGgufVector},
    TensorName{"decoder.#.feed_forward_norm.gain", "blk.#.ffn_norm.weight", kGgufVector},
    TensorName{"decoder.#.feed_forward.w_gate", "blk.#.ffn_gate.weight", kGgufMatrix},
    TensorName{"decoder.#.feed_forward.b_gate", "blk.#.ffn_gate.bias", kGgufVector},
    TensorName{"decoder.#.feed_forward.w_1", "blk.#.ffn_up.weight", kGgufMatrix},
    TensorName{"decoder.#.feed_forward.b_1", "blk.#.ffn_up.bias", kGgufVector},
    TensorName{"decoder.#.feed_forward.w_2", "blk.#.ffn_down.weight", kGgufMatrix},
    TensorName{"decoder.#.feed_forward.b_2", "blk.#.ffn_down.bias", kGgufVector},
};

[[noreturn]] void fail(const GgufFile& file, const std::string& what) {
  throw FormatError(fmt::format("{}: {}", file.name(), what));
}

template <class T>
T required(const GgufFile& file, const char* key, std::optional<T> value) {
  if (!value) fail(file, fmt::format("\"{}\" is missing", key));
  return *value;
}

int64_t required_integer(const GgufFile& file, const char* key, int64_t high) {
  return required(file, key, file.integer(key, 1, high));
}

/// As people write it: 1e-05 rather than the float's 9.999999747378752e-06.
double shortest(double value) {
  return std::stod(fmt::format("{}", static_cast<float>(value)));
}

/// Llama 3's scaling has no keys in GGUF. Instead the tensor rope_freqs.weight says by how much pair i turns
/// more slowly. Returns the rope_scaling that gives the same.
ordered_json llama3_scaling(const GgufFile& file, const GgufTensor& tensor, int64_t d_head, double base) {
  const auto refuse = [&](const char* what) {
    fail(file, fmt::format("tensor \"{}\" {}; expected Llama 3's scaling of positions", kFrequencies, what));
  };
  if (tensor.elements() != d_head / 2) refuse("has not one number for each pair of a head's numbers");
  const std::vector<float> slower = file.floats(tensor);
  if (!std::all_of(slower.begin(), slower.end(), [](float x) { return x >= 1 && x <= 1e6f; }))
    refuse("has a number below 1 or above 1000000");
  const float factor = *std::max_element(slower.begin(), slower.end());
  if (factor == 1) return nullptr;
  const RotaryScaling scaling{
      .kind = RotaryScaling::Kind::kLlama3,
      .factor = factor,
      .original_positions = static_cast<int32_t>(
          file.integer("llama.rope.scaling.original_context_length", 1, 1 << 20).value_or(8192))};
  for (int i = 0; i < d_head / 2; ++i) {
    const double expected = rotary_speed(i, static_cast<int>(d_head), base) /
                            rotary_speed(i, static_cast<int>(d_head), base, scaling);
    if (!(std::abs(slower[static_cast<size_t>(i)] / expected - 1) < 1e-4)) refuse("is another scaling");
  }
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_turns},
          {"high_freq_factor", scaling.high_turns},
          {"original_max_position_embeddings", scaling.original_positions}};
}

ordered_json rope_scaling(const GgufFile& file, int64_t d_head, double base) {
  const std::string_view type = file.text("llama.rope.scaling.type").value_or("none");
  const GgufTensor* frequencies = file.tensor(kFrequencies);
  if (type != "none" && type != "linear")
    fail(file, fmt::format("\"llama.rope.scaling.type\": expected \"none\" or \"linear\", got {}",
                           json_excerpt(std::string(type))));
  if (frequencies != nullptr) {
    if (type != "none") fail(file, fmt::format("tensor \"{}\" and a scaling of type linear", kFrequencies));
    return llama3_scaling(file, *frequencies, d_head, base);
  }
  // Before "scaling.type" there was "scale_linear".
  const auto older = file.number("llama.rope.scale_linear", 1e-3, 1e6);
  if (type == "none" && older.value_or(1) == 1) return nullptr;
  const char* const key = "llama.rope.scaling.factor";
  const double factor = older ? *older : required(file, key, file.number(key, 1e-3, 1e6));
  return {{"rope_type", "linear"}, {"factor", shortest(factor)}};
}

}  // namespace

TensorPlace gguf_place(std::string_view parameter) {
  return place_in(kGgufNames, parameter);
}

GgufHeads gguf_heads(const GgufFile& file) {
  const int64_t heads = required_integer(file, "llama.attention.head_count", 1024);
  return {.heads = heads,
          .key_heads = file.integer("llama.attention.head_count_kv", 1, 1024).value_or(heads)};
}

std::string gguf_config_json(const GgufFile& file) {
  const char* const architecture_key = "general.architecture";
  const std::string_view architecture = required(file, architecture_key, file.text(architecture_key));
  if (architecture != "llama")
    fail(file, fmt::format("\"{}\": expected \"llama\", the only one that is read so far, got {}",
                           architecture_key, json_excerpt(std::string(architecture))));
  if (file.integer("llama.expert_count", 0, 1 << 16).value_or(0) > 0)
    fail(file, "\"llama.expert_count\" is above 0; a mixture of experts is not supported");

  const int64_t d_model = required_integer(file, "llama.embedding_length", 1 << 16);
  const auto [heads, key_heads] = gguf_heads(file);
  const auto own_size = file.integer("llama.attention.key_length", 1, 1024);
  if (!own_size && d_model % heads != 0)
    fail(file, fmt::format("\"llama.attention.head_count\" is {}; expected a divisor of "
                           "\"llama.embedding_length\", {}",
                           heads, d_model));
  const int64_t d_head = own_size.value_or(d_model / heads);
  for (const char* key : {"llama.attention.value_length", "llama.rope.dimension_count"}) {
    if (const auto size = file.integer(key, 1, 1024); size && *size != d_head)
      fail(file, fmt::format("\"{}\" is {}; expected {}, the size of a head", key, *size, d_head));
  }
  if (d_head % 2 != 0) fail(file, fmt::format("heads of {} numbers; rotary positions need pairs", d_head));
  const GgufTensor* embedding = file.tensor("token_embd.weight");
  if (embedding == nullptr) fail(file, "tensor \"token_embd.weight\" is missing");
  const double base = file.number("llama.rope.freq_base", 1e-3, 1e12).value_or(10000);

  ordered_json config;
  config["architectures"] = {"LlamaForCausalLM"};
  config["model_type"] = "llama";
  config["vocab_size"] = file.integer("llama.vocab_size", 2, 1 << 24).value_or(embedding->shape.front());
  config["hidden_size"] = d_model;
  config["intermediate_size"] = required_integer(file, "llama.feed_forward_length", 1 << 20);
  config["num_hidden_layers"] = required_integer(file, "llama.block_count", 1024);
  config["num_attention_heads"] = heads;
  config["num_key_value_heads"] = key_heads;
  config["head_dim"] = d_head;
  config["hidden_act"] = "silu";
  config["max_position_embeddings"] = required_integer(file, "llama.context_length", 1 << 20);
  const char* const epsilon = "llama.attention.layer_norm_rms_epsilon";
  config["rms_norm_eps"] = shortest(required(file, epsilon, file.number(epsilon, 1e-30, 1)));
  config["rope_theta"] = shortest(base);
  config["rope_scaling"] = rope_scaling(file, d_head, base);
  config["attention_bias"] = file.tensor("blk.0.attn_q.bias") != nullptr;
  config["mlp_bias"] = file.tensor("blk.0.ffn_gate.bias") != nullptr;
  config["tie_word_embeddings"] = file.tensor("output.weight") == nullptr;
  for (const auto& [token, name] : {std::pair{GgufSpecial::kBegin, "bos_token_id"},
                                    {GgufSpecial::kEnd, "eos_token_id"},
                                    {GgufSpecial::kPad, "pad_token_id"}}) {
    const auto id = gguf_special_token(file, token);
    config[name] = id ? ordered_json(*id) : ordered_json();
  }
  config["dtype"] = "float32";
  return config.dump(2) + "\n";
}

}  // namespace mh
