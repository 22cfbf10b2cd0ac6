// Llama (Touvron et al. 2023; Hugging Face's LlamaForCausalLM), and models that name it as theirs, e.g. SmolLM2.
#include "multihead/folders/families/llama_kind.h"

namespace mh {
namespace {

FolderPlan read_llama(std::string_view json, std::string_view name) {
  return read_llama_kind({.model_type = "llama", .feed_forward_biases = true}, {}, json, name);
}

}  // namespace

extern const Family kLlamaFamily;
const Family kLlamaFamily = {"llama", "a causal decoder of LlamaForCausalLM", read_llama};

}  // namespace mh
