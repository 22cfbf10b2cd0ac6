// Qwen3 (Yang et al. 2025; Hugging Face's Qwen3ForCausalLM): Llama with RMS norms of queries and keys.
#include "multihead/folders/families/llama_kind.h"

namespace mh {
namespace {

constexpr LlamaKind kQwen3 = {
    .model_type = "qwen3", .query_key_norm = QueryKeyNorm::kRms, .window = LlamaKind::Window::kAsAsked};

FolderPlan read_qwen3(std::string_view json, std::string_view name) {
  LlamaFields defaults = qwen_defaults();
  defaults.d_head = 128;
  return read_llama_kind(kQwen3, defaults, json, name);
}

KnownKeys qwen3_keys() {
  return llama_kind_keys(kQwen3);
}

}  // namespace

extern const Family kQwen3Family;
const Family kQwen3Family = {"qwen3",      "a causal decoder of Qwen3ForCausalLM", read_qwen3, qwen3_keys, {},
                             &kLlamaOracle};

}  // namespace mh
