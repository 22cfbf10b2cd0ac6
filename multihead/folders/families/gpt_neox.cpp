// GPT-NeoX (Black et al. 2022; Hugging Face's GPTNeoXForCausalLM), the family of Pythia: a causal decoder with layer norms, whose
// attention and feed-forward layer read the same row, unless use_parallel_residual is false. A part of each head's numbers turn.
// Queries, keys and values are one fused matrix, head by head.
#include <array>
#include <optional>
#include <utility>

#include "multihead/folders/families/decoder_folder.h"
#include "multihead/folders/families/rope_fields.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

/// Where a key may be missing, the start value is GPTNeoXConfig's default.
struct GptNeoxFields {
  int32_t vocabulary = 50432, positions = 2048, d_model = 6144, layers = 44, heads = 64, d_ff = 24576;
  Activation activation = Activation::kGelu;
  float epsilon = 1e-5f, dropout = 0, attention_dropout = 0;
  bool parallel = true, attention_bias = true, tied = false;
  std::optional<RopeFields> rope = {}, older_rope = {};
  double base = 10000,
         rotated_share = 0.25;  // where rope_parameters have none, in the files of older versions
  std::optional<int32_t> start = 0, end = 2, pad = {};

  template <class V>
  void visit(V& v) {
    visit_decoder(v, *this);
    visit_layers(v, *this);
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("hidden_act", activation, kHuggingFaceActivations);
    v("layer_norm_eps", epsilon, {.low = 1e-30f, .high = 1});
    v("hidden_dropout", dropout, {.low = 0, .high = 0.999f});
    v("use_parallel_residual", parallel);
    v("attention_bias", attention_bias);
    v("rope_parameters", rope);
    v("rope_scaling", older_rope);
    v("rotary_emb_base", base, {.low = 1e-3, .high = 1e12});
    v("rotary_pct", rotated_share, {.low = 0, .high = 1});
  }
};

constexpr std::array kGptNeoxNames = {
    TensorName{"embedding", "embed_in.weight"},
    TensorName{"decoder.final_norm.gain", "final_layer_norm.weight", kOneRow},
    TensorName{"decoder.final_norm.bias", "final_layer_norm.bias", kOneRow},
    TensorName{"decoder.#.self_attention_norm.gain", "layers.#.input_layernorm.weight", kOneRow},
    TensorName{"decoder.#.self_attention_norm.bias", "layers.#.input_layernorm.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_q", "layers.#.attention.query_key_value.weight", kOutIn, 0, 3},
    TensorName{"decoder.#.self_attention.w_k", "layers.#.attention.query_key_value.weight", kOutIn, 1, 3},
    TensorName{"decoder.#.self_attention.w_v", "layers.#.attention.query_key_value.weight", kOutIn, 2, 3},
    TensorName{"decoder.#.self_attention.b_q", "layers.#.attention.query_key_value.bias", kOneRow, 0, 3},
    TensorName{"decoder.#.self_attention.b_k", "layers.#.attention.query_key_value.bias", kOneRow, 1, 3},
    TensorName{"decoder.#.self_attention.b_v", "layers.#.attention.query_key_value.bias", kOneRow, 2, 3},
    TensorName{"decoder.#.self_attention.w_o", "layers.#.attention.dense.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_o", "layers.#.attention.dense.bias", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.gain", "layers.#.post_attention_layernorm.weight", kOneRow},
    TensorName{"decoder.#.feed_forward_norm.bias", "layers.#.post_attention_layernorm.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_1", "layers.#.mlp.dense_h_to_4h.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_1", "layers.#.mlp.dense_h_to_4h.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_2", "layers.#.mlp.dense_4h_to_h.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_2", "layers.#.mlp.dense_4h_to_h.bias", kOneRow},
};
// Masks and angles that older versions saved.
constexpr std::array<std::string_view, 3> kGptNeoxNoWeights = {".attention.bias", ".attention.masked_bias",
                                                               ".rotary_emb.inv_freq"};

FolderPlan read_gpt_neox(std::string_view json, std::string_view name) {
  GptNeoxFields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  DecoderDraft draft =
      decoder_draft(fields, {{"bos_token_id", fields.start}, {"eos_token_id", fields.end}}, name);
  if (fields.d_model % fields.heads != 0)
    draft.wrong.push_back(no_divisor("num_attention_heads", fields.heads, "hidden_size", fields.d_model));
  const RopeFields rope = fields.older_rope ? *fields.older_rope : fields.rope.value_or(RopeFields{});
  const int32_t d_head = fields.d_model / fields.heads;
  turn(draft.config, positions_of(rope,
                                  {.base = fields.base,
                                   .d_head = d_head,
                                   .rotated_share = fields.rotated_share,
                                   .max_positions = fields.positions},
                                  draft.wrong, draft.remarks));
  StackConfig& stack = draft.config.stack;
  stack.order = fields.parallel ? SublayerOrder::kParallel : SublayerOrder::kOneAfterAnother;
  stack.layers.assign(static_cast<size_t>(fields.layers),
                      {.self_attention = {.heads = fields.heads,
                                          .biases = fields.attention_bias ? Biases::kAll : Biases::kNone},
                       .feed_forward = {.d_ff = fields.d_ff, .activation = fields.activation}});
  return decoder_plan({.model_type = "gpt_neox",
                       .base = "gpt_neox.",
                       .tensors = kGptNeoxNames,
                       .output = "embed_out.weight",
                       .token_labels = "classifier",
                       .no_weights = kGptNeoxNoWeights,
                       .block = d_head},
                      std::move(draft), kDecoderFields, json, name, divided_heads("num_attention_heads"));
}

KnownKeys gpt_neox_keys() {
  // Transformers 4 writes these beside rotary_emb_base and rotary_pct, and 5 reads the latter.
  KnownKeys keys{.obeyed = keys_of(GptNeoxFields()),
                 .rules = {{.key = "rope_theta"}, {.key = "partial_rotary_factor"}}};
  return keys.add(causal_keys());
}

constexpr OracleAttention kGptNeoxAttention[] = {{.module = "attention",
                                                  .queries = "attention.query_key_value",
                                                  .by_head = true,
                                                  .output = "attention.dense"}};
constexpr OracleStack kGptNeoxStack[] = {{.layers = "layers",
                                          .states = "final_layer_norm",
                                          .attentions = kGptNeoxAttention,
                                          .second_linear = "mlp.dense_4h_to_h"}};
constexpr OracleModules kGptNeoxOracle = {.stacks = kGptNeoxStack};

}  // namespace

extern const Family kGptNeoxFamily;
const Family kGptNeoxFamily = {
    "gpt_neox", "a causal decoder of GPTNeoXForCausalLM", read_gpt_neox, gpt_neox_keys, {}, &kGptNeoxOracle};

}  // namespace mh
