// Qwen2 and Qwen2.5 (Yang et al. 2024; Hugging Face's Qwen2ForCausalLM): Llama whose queries, keys and values have biases.
#include "multihead/folders/families/llama_kind.h"

namespace mh {
namespace {

constexpr LlamaKind kQwen2 = {.model_type = "qwen2",
                              .attention_biases = Biases::kQueriesKeysValues,
                              .window = LlamaKind::Window::kAsAsked};

FolderPlan read_qwen2(std::string_view json, std::string_view name) {
  return read_llama_kind(kQwen2, qwen_defaults(), json, name);
}

KnownKeys qwen2_keys() {
  return llama_kind_keys(kQwen2);
}

}  // namespace

extern const Family kQwen2Family;
const Family kQwen2Family = {"qwen2",      "a causal decoder of Qwen2ForCausalLM", read_qwen2, qwen2_keys, {},
                             &kLlamaOracle};

}  // namespace mh
