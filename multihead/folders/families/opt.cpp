// OPT (Zhang et al. 2022; Hugging Face's OPTForCausalLM): a causal decoder with layer norms before its sublayers, or behind them,
// and learned positions, whose table has two rows before that of position 0.
#include <array>
#include <optional>
#include <utility>

#include "multihead/folders/families/decoder_folder.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

/// Where a key may be missing, the start value is OPTConfig's default.
struct OptFields {
  int32_t vocabulary = 50272, positions = 2048, d_model = 768, layers = 12, heads = 12, d_ff = 3072;
  std::optional<int32_t> d_words = {};
  Activation activation = Activation::kRelu;
  float dropout = 0.1f, attention_dropout = 0;
  float epsilon = 1e-5f;  // which OPTConfig does not say
  bool norm_before = true, no_final_norm = false, biases = true, norm_parameters = true, tied = true;
  std::optional<int32_t> start = 2, end = 2, pad = 1;

  template <class V>
  void visit(V& v) {
    visit_decoder(v, *this);
    visit_layers(v, *this);
    v("ffn_dim", d_ff, {.low = 1, .high = 1 << 20});
    v("word_embed_proj_dim", d_words, {.low = 1, .high = 1 << 16});
    v("activation_function", activation, kHuggingFaceActivations);
    v("dropout", dropout, {.low = 0, .high = 0.999f});
    v("do_layer_norm_before", norm_before);
    v("_remove_final_layer_norm", no_final_norm);
    v("enable_bias", biases);
    v("layer_norm_elementwise_affine", norm_parameters);
  }
};

constexpr std::array kOptNames = {
    TensorName{"embedding", "embed_tokens.weight"},
    TensorName{"positions", "embed_positions.weight"},
    TensorName{"decoder.final_norm.gain", "final_layer_norm.weight", kOneRow},
    TensorName{"decoder.final_norm.bias", "final_layer_norm.bias", kOneRow},
    TensorName{"decoder.#.self_attention_norm.gain", "layers.#.self_attn_layer_norm.weight", kOneRow},
    TensorName{"decoder.#.self_attention_norm.bias", "layers.#.self_attn_layer_norm.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_q", "layers.#.self_attn.q_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_q", "layers.#.self_attn.q_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_k", "layers.#.self_attn.k_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_k", "layers.#.self_attn.k_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_v", "layers.#.self_attn.v_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_v", "layers.#.self_attn.v_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_o", "layers.#.self_attn.out_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_o", "layers.#.self_attn.out_proj.bias", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.gain", "layers.#.final_layer_norm.weight", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.bias", "layers.#.final_layer_norm.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_1", "layers.#.fc1.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_1", "layers.#.fc1.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_2", "layers.#.fc2.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_2", "layers.#.fc2.bias", kOneRow},
};

FolderPlan read_opt(std::string_view json, std::string_view name) {
  OptFields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  DecoderDraft draft = decoder_draft(
      fields, {{"bos_token_id", fields.start}, {"eos_token_id", fields.end}, {"pad_token_id", fields.pad}},
      name);
  if (fields.d_model % fields.heads != 0)
    draft.wrong.push_back(no_divisor("num_attention_heads", fields.heads, "hidden_size", fields.d_model));
  if (fields.d_words.value_or(fields.d_model) != fields.d_model)
    draft.wrong.emplace_back(
        "word_embed_proj_dim differs from hidden_size (opt-350m); expected embeddings of hidden_size "
        "numbers");
  if (!fields.norm_parameters)
    draft.wrong.emplace_back("layer_norm_elementwise_affine is false; expected norms with parameters");
  draft.config.position_offset = 2;
  StackConfig& stack = draft.config.stack;
  stack.norm.placement = fields.norm_before ? NormPlacement::kPre : NormPlacement::kPost;
  stack.norm.at_end = fields.norm_before && !fields.no_final_norm;
  const Biases biases = fields.biases ? Biases::kAll : Biases::kNone;
  stack.layers.assign(
      static_cast<size_t>(fields.layers),
      {.self_attention = {.heads = fields.heads, .biases = biases},
       .feed_forward = {.d_ff = fields.d_ff, .activation = fields.activation, .biases = biases}});
  return decoder_plan({.model_type = "opt", .base = "model.decoder.", .tensors = kOptNames}, std::move(draft),
                      kDecoderFields, json, name, divided_heads("num_attention_heads"));
}

KnownKeys opt_keys() {
  KnownKeys keys{.obeyed = keys_of(OptFields()),
                 .rules = {{.key = "layerdrop"}, {.key = "activation_dropout"}, {.key = "init_std"}}};
  return keys.add(causal_keys());
}

constexpr OracleAttention kOptAttention[] = {{.module = "self_attn",
                                              .queries = "self_attn.q_proj",
                                              .keys = "self_attn.k_proj",
                                              .output = "self_attn.out_proj",
                                              .sum_norm = "self_attn_layer_norm",
                                              .scaled_queries = true}};
constexpr OracleStack kOptStack[] = {{.layers = "decoder.layers",
                                      .states = "decoder.final_layer_norm",
                                      .attentions = kOptAttention,
                                      .second_linear = "fc2"}};
constexpr OracleModules kOptOracle = {.stacks = kOptStack};

}  // namespace

extern const Family kOptFamily;
const Family kOptFamily = {"opt", "a causal decoder of OPTForCausalLM", read_opt, opt_keys, {}, &kOptOracle};

}  // namespace mh
