// GPT-2 (Radford et al. 2019; Hugging Face's GPT2LMHeadModel): a causal decoder with pre-norm layers,
// learned positions, and queries, keys and values in one fused matrix. Its matrices are stored as
// [in, out].
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/families/decoder_folder.h"
#include "multihead/folders/family.h"
#include "multihead/folders/family_names.h"
#include "multihead/folders/known_keys.h"
#include "multihead/io/config.h"
#include "multihead/kernels/attention.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/config_checks.h"

namespace mh {
namespace {

/// Where a key may be missing, the start value is GPT2Config's default.
struct Gpt2Fields {
  int32_t vocabulary = 50257, positions = 1024, d_model = 768, layers = 12, heads = 12;
  std::optional<int32_t> d_ff;
  Activation activation = Activation::kGeluTanh;
  float epsilon = 1e-5f, dropout = 0.1f, embedding_dropout = 0.1f, attention_dropout = 0.1f;
  bool scale_weights = true, scale_by_layer = false, reordered = false, tied = true, cross_attention = false;
  std::optional<int32_t> start = 50256, end = 50256, pad;

  template <class V>
  void visit(V& v) {
    v("vocab_size", vocabulary, {.low = 2, .high = 1 << 24});
    v("n_positions", positions, {.low = 1, .high = 1 << 20});
    v("n_embd", d_model, {.low = 1, .high = 1 << 16});
    v("n_layer", layers, {.low = 1, .high = 1024});
    v("n_head", heads, {.low = 1, .high = 1024});
    v("n_inner", d_ff, {.low = 1, .high = 1 << 20});
    v("activation_function", activation, kHuggingFaceActivations);
    v("layer_norm_epsilon", epsilon, {.low = 1e-30f, .high = 1});
    v("resid_pdrop", dropout, {.low = 0, .high = 0.999f});
    v("embd_pdrop", embedding_dropout, {.low = 0, .high = 0.999f});
    v("attn_pdrop", attention_dropout, {.low = 0, .high = 0.999f});
    v("scale_attn_weights", scale_weights);
    v("scale_attn_by_inverse_layer_idx", scale_by_layer);
    v("reorder_and_upcast_attn", reordered);
    v("tie_word_embeddings", tied);
    v("add_cross_attention", cross_attention);
    v("bos_token_id", start, kTokenIds);
    v("eos_token_id", end, kTokenIds);
    v("pad_token_id", pad, kTokenIds);
  }
};

constexpr ConfigNames kGpt2Fields = {.vocabulary = "vocab_size",
                                     .d_model = "n_embd",
                                     .max_positions = "n_positions",
                                     .pad_id = "pad_token_id",
                                     .eos_id = "eos_token_id",
                                     .start_id = "bos_token_id"};

CausalConfig gpt2_config(const Gpt2Fields& f) {
  CausalConfig config = decoder_config(f);
  for (int i = 0; i < f.layers; ++i) {
    HeadGeometry heads{.heads = f.heads};
    // softmax(Q K^T / sqrt(d_key)), or not scaled, or by the layer's number as well.
    if (!f.scale_weights || f.scale_by_layer) {
      float scale = f.scale_weights ? attention_scale(f.d_model / f.heads) : 1;
      if (f.scale_by_layer) scale /= static_cast<float>(i + 1);
      heads.scale = scale;
    }
    config.stack.layers.push_back(
        {.self_attention = heads,
         .feed_forward = {.d_ff = f.d_ff.value_or(4 * f.d_model), .activation = f.activation}});
  }
  return config;
}

constexpr TensorPlace::Layout kMatrix = TensorPlace::Layout::kMatrix, kVector = TensorPlace::Layout::kVector;

constexpr std::array kGpt2Names = {
    TensorName{"embedding", "wte.weight"},
    TensorName{"positions", "wpe.weight"},
    TensorName{"decoder.final_norm.gain", "ln_f.weight", kVector},
    TensorName{"decoder.final_norm.bias", "ln_f.bias", kVector},
    TensorName{"decoder.#.self_attention_norm.gain", "h.#.ln_1.weight", kVector},
    TensorName{"decoder.#.self_attention_norm.bias", "h.#.ln_1.bias", kVector},
    TensorName{"decoder.#.self_attention.w_q", "h.#.attn.c_attn.weight", kMatrix, 0, 3},
    TensorName{"decoder.#.self_attention.w_k", "h.#.attn.c_attn.weight", kMatrix, 1, 3},
    TensorName{"decoder.#.self_attention.w_v", "h.#.attn.c_attn.weight", kMatrix, 2, 3},
    TensorName{"decoder.#.self_attention.b_q", "h.#.attn.c_attn.bias", kVector, 0, 3},
    TensorName{"decoder.#.self_attention.b_k", "h.#.attn.c_attn.bias", kVector, 1, 3},
    TensorName{"decoder.#.self_attention.b_v", "h.#.attn.c_attn.bias", kVector, 2, 3},
    TensorName{"decoder.#.self_attention.w_o", "h.#.attn.c_proj.weight"},
    TensorName{"decoder.#.self_attention.b_o", "h.#.attn.c_proj.bias", kVector},
    TensorName{"decoder.#.feed_forward_norm.gain", "h.#.ln_2.weight", kVector},
    TensorName{"decoder.#.feed_forward_norm.bias", "h.#.ln_2.bias", kVector},
    TensorName{"decoder.#.feed_forward.w_1", "h.#.mlp.c_fc.weight"},
    TensorName{"decoder.#.feed_forward.b_1", "h.#.mlp.c_fc.bias", kVector},
    TensorName{"decoder.#.feed_forward.w_2", "h.#.mlp.c_proj.weight"},
    TensorName{"decoder.#.feed_forward.b_2", "h.#.mlp.c_proj.bias", kVector},
};

// Masks that older versions saved.
constexpr std::array<std::string_view, 2> kGpt2NoWeights = {".attn.bias", ".attn.masked_bias"};

FolderPlan read_gpt2(std::string_view json, std::string_view name) {
  Gpt2Fields fields;
  from_json(fields, with_one_end(json, name), name, UnknownKeys::kIgnore);
  DecoderDraft draft = decoder_draft(
      fields, {{"bos_token_id", fields.start}, {"eos_token_id", fields.end}, {"pad_token_id", fields.pad}},
      name);
  if (fields.cross_attention)
    draft.wrong.emplace_back("add_cross_attention is true; expected a decoder by itself");
  if (fields.d_model % fields.heads != 0) {
    draft.wrong.push_back(no_divisor("n_head", fields.heads, kGpt2Fields.d_model, fields.d_model));
  } else {
    draft.config = gpt2_config(fields);
    for (std::string& problem : problems_of(draft, kGpt2Fields)) draft.wrong.push_back(std::move(problem));
  }
  FolderPlan plan = decoder_plan({.model_type = "gpt2",
                                  .base = "transformer.",
                                  .tensors = kGpt2Names,
                                  .token_labels = "classifier",
                                  .no_weights = kGpt2NoWeights},
                                 std::move(draft), kGpt2Fields, json, name, divided_heads("n_head"));
  plan.prunes_heads = true;
  return plan;
}

constexpr KeyAlias kGpt2Aliases[] = {{"hidden_size", "n_embd"},
                                     {"max_position_embeddings", "n_positions"},
                                     {"num_attention_heads", "n_head"},
                                     {"num_hidden_layers", "n_layer"}};

KnownKeys gpt2_keys() {
  KnownKeys keys{.obeyed = keys_of(Gpt2Fields()),
                 .rules = {{.key = "n_ctx"},  // of older versions, which did not read it either
                           {.key = "summary_*"},
                           {.key = "hidden_dropout"}}};  // of a head for classes
  return keys.add(causal_keys());
}

constexpr OracleAttention kGpt2Attention[] = {
    {.module = "attn", .queries = "attn.c_attn", .output = "attn.c_proj"}};
constexpr OracleStack kGpt2Stack[] = {
    {.layers = "h", .states = "ln_f", .attentions = kGpt2Attention, .second_linear = "mlp.c_proj"}};
constexpr OracleModules kGpt2Oracle = {.stacks = kGpt2Stack};

}  // namespace

extern const Family kGpt2Family;
const Family kGpt2Family = {
    "gpt2", "a causal decoder of GPT2LMHeadModel", read_gpt2, gpt2_keys, kGpt2Aliases, &kGpt2Oracle};

}  // namespace mh
