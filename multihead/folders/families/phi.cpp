// Phi (Li et al. 2023; Hugging Face's PhiForCausalLM), Phi-1 to Phi-2: a causal decoder whose attention and feed-forward layer
// read the same row through one layer norm. A part of each head's numbers turn, and the output layer has a bias.
#include <array>
#include <optional>
#include <utility>

#include "multihead/folders/families/decoder_folder.h"
#include "multihead/folders/families/rope_fields.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/models/config_checks.h"
#include "multihead/nn/head_geometry.h"

namespace mh {
namespace {

/// Where a key may be missing, the start value is PhiConfig's default.
struct PhiFields {
  int32_t vocabulary = 51200, positions = 2048, d_model = 2048, layers = 24, heads = 32, d_ff = 8192;
  std::optional<int32_t> key_heads = {}, d_head = {};
  Activation activation = Activation::kGeluTanh;
  float epsilon = 1e-5f, dropout = 0, attention_dropout = 0;
  bool tied = false, query_key_norm = false;
  std::optional<RopeFields> rope = {}, older_rope = {};
  double base = 10000, rotated_share = 0.5;
  std::optional<int32_t> start = 1, end = 2, pad = {};

  template <class V>
  void visit(V& v) {
    visit_decoder(v, *this);
    visit_layers(v, *this);
    v("num_key_value_heads", key_heads, {.low = 1, .high = 1024});
    v("head_dim", d_head, {.low = 1, .high = kLargestHead});
    v("intermediate_size", d_ff, {.low = 1, .high = 1 << 20});
    v("hidden_act", activation, kHuggingFaceActivations);
    v("layer_norm_eps", epsilon, {.low = 1e-30f, .high = 1});
    v("resid_pdrop", dropout, {.low = 0, .high = 0.999f});
    v("qk_layernorm", query_key_norm);
    v("rope_parameters", rope);
    v("rope_scaling", older_rope);
    v("rope_theta", base, {.low = 1e-3, .high = 1e12});
    v("partial_rotary_factor", rotated_share, {.low = 0, .high = 1});
  }
};

constexpr std::array kPhiNames = {
    TensorName{"embedding", "embed_tokens.weight"},
    TensorName{"decoder.final_norm.gain", "final_layernorm.weight", kOneRow},
    TensorName{"decoder.final_norm.bias", "final_layernorm.bias", kOneRow},
    TensorName{"decoder.#.self_attention_norm.gain", "layers.#.input_layernorm.weight", kOneRow},
    TensorName{"decoder.#.self_attention_norm.bias", "layers.#.input_layernorm.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_q", "layers.#.self_attn.q_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_q", "layers.#.self_attn.q_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_k", "layers.#.self_attn.k_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_k", "layers.#.self_attn.k_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_v", "layers.#.self_attn.v_proj.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_v", "layers.#.self_attn.v_proj.bias", kOneRow},
    TensorName{"decoder.#.self_attention.w_o", "layers.#.self_attn.dense.weight", kOutIn},
    TensorName{"decoder.#.self_attention.b_o", "layers.#.self_attn.dense.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_1", "layers.#.mlp.fc1.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_1", "layers.#.mlp.fc1.bias", kOneRow},
    TensorName{"decoder.#.feed_forward.w_2", "layers.#.mlp.fc2.weight", kOutIn},
    TensorName{"decoder.#.feed_forward.b_2", "layers.#.mlp.fc2.bias", kOneRow},
};
constexpr std::array<std::string_view, 1> kPhiNoWeights = {".rotary_emb.inv_freq"};

FolderPlan read_phi(std::string_view json, std::string_view name) {
  PhiFields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  DecoderDraft draft =
      decoder_draft(fields, {{"bos_token_id", fields.start}, {"eos_token_id", fields.end}}, name);
  const int32_t key_heads = fields.key_heads.value_or(fields.heads);
  if (!fields.d_head && fields.d_model % fields.heads != 0)
    draft.wrong.push_back(no_divisor("num_attention_heads", fields.heads, "hidden_size", fields.d_model));
  if (fields.heads % key_heads != 0)
    draft.wrong.push_back(no_divisor("num_key_value_heads", key_heads, "num_attention_heads", fields.heads));
  if (fields.query_key_norm)
    draft.wrong.emplace_back("qk_layernorm is true; expected queries and keys without layer norms");
  const RopeFields rope = fields.older_rope ? *fields.older_rope : fields.rope.value_or(RopeFields{});
  turn(draft.config, positions_of(rope,
                                  {.base = fields.base,
                                   .d_head = fields.d_head.value_or(fields.d_model / fields.heads),
                                   .rotated_share = fields.rotated_share,
                                   .max_positions = fields.positions},
                                  draft.wrong, draft.remarks));
  draft.config.output_bias = true;
  StackConfig& stack = draft.config.stack;
  stack.order = SublayerOrder::kParallelOneNorm;
  stack.layers.assign(static_cast<size_t>(fields.layers),
                      {.self_attention = {.heads = fields.heads,
                                          .d_key = fields.d_head.value_or(0),
                                          .key_heads = fields.key_heads.value_or(0)},
                       .feed_forward = {.d_ff = fields.d_ff, .activation = fields.activation}});
  return decoder_plan({.model_type = "phi", .tensors = kPhiNames, .no_weights = kPhiNoWeights},
                      std::move(draft), kDecoderFields, json, name, grouped_heads);
}

KnownKeys phi_keys() {
  KnownKeys keys{.obeyed = keys_of(PhiFields()), .rules = {{.key = "embd_pdrop"}, {.key = "auto_map"}}};
  return keys.add(causal_keys());
}

constexpr OracleAttention kPhiAttention[] = {{.module = "self_attn",
                                              .queries = "self_attn.q_proj",
                                              .keys = "self_attn.k_proj",
                                              .output = "self_attn.dense"}};
constexpr OracleStack kPhiStack[] = {{.layers = "layers",
                                      .states = "final_layernorm",
                                      .attentions = kPhiAttention,
                                      .second_linear = "mlp.fc2"}};
constexpr OracleModules kPhiOracle = {.stacks = kPhiStack};

}  // namespace

extern const Family kPhiFamily;
const Family kPhiFamily = {"phi", "a causal decoder of PhiForCausalLM", read_phi, phi_keys, {}, &kPhiOracle};

}  // namespace mh
