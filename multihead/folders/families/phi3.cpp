// Phi-3 (Abdin et al. 2024; Hugging Face's Phi3ForCausalLM): Llama whose queries, keys and values are one fused matrix, and the
// two of a gated layer another; heads may turn a part of their numbers.
#include "multihead/folders/families/llama_kind.h"

#include <array>

namespace mh {
namespace {

constexpr std::array kPhi3Names = {
    TensorName{"decoder.#.self_attention.w_q", "layers.#.self_attn.qkv_proj.weight", kOutIn, 0, 3},
    TensorName{"decoder.#.self_attention.w_k", "layers.#.self_attn.qkv_proj.weight", kOutIn, 1, 3},
    TensorName{"decoder.#.self_attention.w_v", "layers.#.self_attn.qkv_proj.weight", kOutIn, 2, 3},
    TensorName{"decoder.#.feed_forward.w_gate", "layers.#.mlp.gate_up_proj.weight", kOutIn, 0, 2},
    TensorName{"decoder.#.feed_forward.w_1", "layers.#.mlp.gate_up_proj.weight", kOutIn, 1, 2},
};

constexpr LlamaKind kPhi3 = {.model_type = "phi3",
                             .attention_biases = Biases::kNone,
                             .partial_rotary = true,
                             .longrope_alone = true,
                             .residual_dropout = true,
                             .own_tensors = kPhi3Names,
                             .window = LlamaKind::Window::kAllLayers};

FolderPlan read_phi3(std::string_view json, std::string_view name) {
  return read_llama_kind(kPhi3,
                         {.vocabulary = 32064,
                          .positions = 4096,
                          .d_model = 3072,
                          .d_ff = 8192,
                          .epsilon = 1e-5f,
                          .original_positions = 4096,
                          .end = 32000,
                          .pad = 32000},
                         json, name);
}

KnownKeys phi3_keys() {
  KnownKeys keys = llama_kind_keys(kPhi3);
  keys.rules.push_back({.key = "embd_pdrop"});  // Phi3Model does not read it
  keys.rules.push_back({.key = "auto_map"});    // of files from before transformers had the class
  return keys;
}

constexpr OracleAttention kPhi3Attention[] = {{.module = "self_attn",
                                               .queries = "self_attn.qkv_proj",
                                               .output = "self_attn.o_proj",
                                               .float32_softmax = true}};
constexpr OracleStack kPhi3Stack[] = {
    {.layers = "layers", .states = "norm", .attentions = kPhi3Attention, .second_linear = "mlp.down_proj"}};
constexpr OracleModules kPhi3Oracle = {.stacks = kPhi3Stack};

}  // namespace

extern const Family kPhi3Family;
const Family kPhi3Family = {"phi3",      "a causal decoder of Phi3ForCausalLM", read_phi3, phi3_keys, {},
                            &kPhi3Oracle};

}  // namespace mh
