#include "multihead/folders/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "multihead/folders/gguf_keys.h"
#include "multihead/folders/gguf_rope.h"

namespace mh {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void fail(const GgufFile& file, const std::string& what) {
  throw FormatError(fmt::format("{}: {}", file.name(), what));
}

int64_t required_integer(const GgufFile& file, const std::string& key, int64_t high) {
  return gguf_required(file, key, file.integer(key, 1, high));
}

int64_t size_of_heads(const GgufFile& file, const GgufArchitecture& of, int64_t d_model, int64_t heads) {
  const auto own_size = file.integer(of.key("attention.key_length"), 1, 1024);
  if (!own_size && d_model % heads != 0)
    fail(file, fmt::format("\"{}\" is {}; expected a divisor of \"{}\", {}", of.key("attention.head_count"),
                           heads, of.key("embedding_length"), d_model));
  const int64_t d_head = own_size.value_or(d_model / heads);
  const std::string key = of.key("attention.value_length");
  if (const auto size = file.integer(key, 1, 1024); size && *size != d_head)
    fail(file, fmt::format("\"{}\" is {}; expected {}, the size of a head", key, *size, d_head));
  return d_head;
}

/// The value of one key; nothing where the field is left out.
std::optional<ordered_json> value_of(const GgufFile& file, const GgufArchitecture& of,
                                     const GgufField& field) {
  const std::string key = of.key(field.key);
  switch (field.kind) {
    case GgufField::Kind::kInteger: {
      const auto found = file.integer(key, static_cast<int64_t>(field.low), static_cast<int64_t>(field.high));
      if (found) return *found;
      if (field.otherwise) return static_cast<int64_t>(*field.otherwise);
      return std::nullopt;
    }
    case GgufField::Kind::kNumber: {
      const auto found = file.number(key, field.low, field.high);
      if (found) return gguf_shortest(*found);
      if (field.otherwise) return *field.otherwise;
      return std::nullopt;
    }
    case GgufField::Kind::kFlag:
      break;
  }
  const auto found = file.flag(key);
  if (found) return *found;
  if (field.otherwise) return *field.otherwise != 0;
  return std::nullopt;
}

}  // namespace

double gguf_shortest(double value) {
  return std::stod(fmt::format("{}", static_cast<float>(value)));
}

GgufHeads gguf_heads(const GgufFile& file) {
  const GgufArchitecture& of = gguf_architecture(file);
  const int64_t heads = required_integer(file, of.key("attention.head_count"), 1024);
  const auto key_heads = file.integer(of.key("attention.head_count_kv"), 1, 1024);
  if (!of.key_heads && key_heads.value_or(heads) != heads)
    fail(file, fmt::format("\"{}\" is {}; expected {}, one for each head", of.key("attention.head_count_kv"),
                           *key_heads, heads));
  return {.heads = heads, .key_heads = key_heads.value_or(heads)};
}

namespace {

/// What all models have.
ordered_json begun_config(const GgufFile& file, const GgufArchitecture& of) {
  const GgufTensor* embedding = file.tensor("token_embd.weight");
  if (embedding == nullptr) fail(file, "tensor \"token_embd.weight\" is missing");
  ordered_json config;
  config["architectures"] = {of.class_name};
  config["model_type"] = of.model_type;
  config["vocab_size"] = file.integer(of.key("vocab_size"), 2, 1 << 24).value_or(embedding->shape.front());
  return config;
}

/// Of a decoder.
ordered_json decoder_config(const GgufFile& file, const GgufArchitecture& of) {
  if (const std::string key = of.key("expert_count"); file.integer(key, 0, 1 << 16).value_or(0) > 0)
    fail(file, fmt::format("\"{}\" is above 0; a mixture of experts is not supported", key));

  const int64_t d_model = required_integer(file, of.key("embedding_length"), 1 << 16);
  const auto [heads, key_heads] = gguf_heads(file);
  const int64_t d_head = size_of_heads(file, of, d_model, heads);
  ordered_json config = begun_config(file, of);
  config["hidden_size"] = d_model;
  config["intermediate_size"] = required_integer(file, of.key("feed_forward_length"), 1 << 20);
  config["num_hidden_layers"] = required_integer(file, of.key("block_count"), 1024);
  config["num_attention_heads"] = heads;
  if (of.key_heads) config["num_key_value_heads"] = key_heads;
  if (of.head_size || d_head * heads != d_model) config["head_dim"] = d_head;
  config[of.activation_field] = of.activation;
  config["max_position_embeddings"] = required_integer(file, of.key("context_length"), 1 << 20);
  const std::string epsilon = of.key(of.epsilon_key);
  config[of.epsilon_field] = gguf_shortest(gguf_required(file, epsilon, file.number(epsilon, 1e-30, 1)));
  add_gguf_rope(file, of, d_head, config);
  for (const auto& [field, tensor] :
       {std::pair{"attention_bias", of.attention_bias}, {"mlp_bias", of.feed_forward_bias}}) {
    if (tensor != nullptr) config[field] = file.tensor(tensor) != nullptr;
  }
  for (const GgufField& field : of.fields) {
    if (auto value = value_of(file, of, field)) config[field.field] = std::move(*value);
  }
  if (of.finish != nullptr) of.finish(file, of, config);
  return config;
}

/// Of T5 and mT5, and of umT5, whose layers have a table of biases each. The largest distance is llama.cpp's.
ordered_json t5_config(const GgufFile& file, const GgufArchitecture& of) {
  ordered_json config = begun_config(file, of);
  if (file.tensor("enc.blk.1.attn_rel_b.weight") != nullptr) {
    config["model_type"] = "umt5";
    config["architectures"] = {"UMT5ForConditionalGeneration"};
  }
  const int64_t d_model = required_integer(file, of.key("embedding_length"), 1 << 16);
  const int64_t heads = gguf_heads(file).heads, layers = required_integer(file, of.key("block_count"), 1024);
  config["d_model"] = d_model;
  config["d_kv"] = size_of_heads(file, of, d_model, heads);
  config["d_ff"] = required_integer(file, of.key("feed_forward_length"), 1 << 20);
  config["num_layers"] = layers;
  config["num_decoder_layers"] = file.integer(of.key("decoder_block_count"), 1, 1024).value_or(layers);
  config["num_heads"] = heads;
  config["relative_attention_num_buckets"] =
      required_integer(file, of.key("attention.relative_buckets_count"), 1 << 12);
  config["relative_attention_max_distance"] = 128;
  config["n_positions"] = required_integer(file, of.key("context_length"), 1 << 20);
  const std::string epsilon = of.key(of.epsilon_key);
  config["layer_norm_epsilon"] = gguf_shortest(gguf_required(file, epsilon, file.number(epsilon, 1e-30, 1)));
  config["feed_forward_proj"] = file.tensor("enc.blk.0.ffn_gate.weight") != nullptr ? "gated-gelu" : "relu";
  config["decoder_start_token_id"] = file.integer(of.key("decoder_start_token_id"), 0, INT32_MAX).value_or(0);
  return config;
}

bool has_output_layer(const GgufFile& file, bool is_t5) {
  const GgufTensor* output = file.tensor("output.weight");
  const GgufTensor* embeddings = file.tensor("token_embd.weight");
  if (output == nullptr || embeddings == nullptr || !is_t5) return output != nullptr;
  // T5 scales the states before an output layer that is its embeddings, also where a file has them twice.
  return output->type != embeddings->type || output->shape != embeddings->shape ||
         !std::equal(output->bytes.begin(), output->bytes.end(), embeddings->bytes.begin(),
                     embeddings->bytes.end());
}

}  // namespace

std::string gguf_config_json(const GgufFile& file) {
  const GgufArchitecture& of = gguf_architecture(file);
  const bool is_t5 = of.config == GgufArchitecture::Config::kT5;
  ordered_json config = is_t5 ? t5_config(file, of) : decoder_config(file, of);
  config["tie_word_embeddings"] = !has_output_layer(file, is_t5);
  for (const auto& [token, name] : {std::pair{GgufSpecial::kBegin, "bos_token_id"},
                                    {GgufSpecial::kEnd, "eos_token_id"},
                                    {GgufSpecial::kPad, "pad_token_id"}}) {
    const auto id = gguf_special_token(file, token);
    if (id || !is_t5) config[name] = id ? ordered_json(*id) : ordered_json();
  }
  config["dtype"] = "float32";
  return config.dump(2) + "\n";
}

}  // namespace mh
