// Mistral (Jiang et al. 2023; Hugging Face's MistralForCausalLM): Llama whose queries see the last `sliding_window` keys, or
// all where that is null, and that has no biases.
#include "multihead/folders/families/llama_kind.h"

namespace mh {
namespace {

constexpr LlamaKind kMistral = {
    .model_type = "mistral", .attention_biases = Biases::kNone, .window = LlamaKind::Window::kAllLayers};

FolderPlan read_mistral(std::string_view json, std::string_view name) {
  return read_llama_kind(kMistral, {.positions = 131072, .d_ff = 14336, .key_heads = 8, .window = 4096}, json,
                         name);
}

KnownKeys mistral_keys() {
  return llama_kind_keys(kMistral);
}

}  // namespace

extern const Family kMistralFamily;
const Family kMistralFamily = {
    "mistral", "a causal decoder of MistralForCausalLM", read_mistral, mistral_keys, {}, &kLlamaOracle};

}  // namespace mh
