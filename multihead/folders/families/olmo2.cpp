// OLMo 2 (OLMo team 2024; Hugging Face's Olmo2ForCausalLM): Llama whose norms stand behind the sublayers, before the sum, and
// with RMS norms over the queries of all heads, and over their keys.
#include "multihead/folders/families/llama_kind.h"

#include <array>

namespace mh {
namespace {

constexpr std::array kOlmo2Names = {
    TensorName{"decoder.#.self_attention_output_norm.gain", "layers.#.post_attention_layernorm.weight",
               kOneRow},
    TensorName{"decoder.#.feed_forward_output_norm.gain", "layers.#.post_feedforward_layernorm.weight",
               kOneRow},
};

constexpr LlamaKind kOlmo2 = {.model_type = "olmo2",
                              .query_key_norm = QueryKeyNorm::kRmsRow,
                              .norms = NormPlacement::kOutput,
                              .own_tensors = kOlmo2Names};

FolderPlan read_olmo2(std::string_view json, std::string_view name) {
  return read_llama_kind(
      kOlmo2, {.vocabulary = 50304, .epsilon = 1e-5f, .start = std::nullopt, .end = 50279, .pad = 1}, json,
      name);
}

KnownKeys olmo2_keys() {
  return llama_kind_keys(kOlmo2);
}

constexpr OracleAttention kOlmo2Attention[] = {{.module = "self_attn",
                                                .queries = "self_attn.q_proj",
                                                .keys = "self_attn.k_proj",
                                                .output = "self_attn.o_proj",
                                                .added = "post_attention_layernorm",
                                                .float32_softmax = true}};
constexpr OracleStack kOlmo2Stack[] = {
    {.layers = "layers", .states = "norm", .attentions = kOlmo2Attention, .second_linear = "mlp.down_proj"}};
constexpr OracleModules kOlmo2Oracle = {.stacks = kOlmo2Stack};

}  // namespace

extern const Family kOlmo2Family;
const Family kOlmo2Family = {"olmo2",      "a causal decoder of Olmo2ForCausalLM", read_olmo2, olmo2_keys, {},
                             &kOlmo2Oracle};

}  // namespace mh
