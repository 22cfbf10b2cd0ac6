// Llama (Touvron et al. 2023; Hugging Face's LlamaForCausalLM), and models that name it as theirs, e.g. SmolLM2.
#include "multihead/folders/families/llama_kind.h"

namespace mh {
namespace {

constexpr LlamaKind kLlama = {.model_type = "llama", .feed_forward_biases = true, .heads_divide = true};

FolderPlan read_llama(std::string_view json, std::string_view name) {
  return read_llama_kind(kLlama, {}, json, name);
}

KnownKeys llama_keys() {
  return llama_kind_keys(kLlama);
}

}  // namespace

extern const Family kLlamaFamily;
const Family kLlamaFamily = {"llama",      "a causal decoder of LlamaForCausalLM", read_llama, llama_keys, {},
                             &kLlamaOracle};

}  // namespace mh
