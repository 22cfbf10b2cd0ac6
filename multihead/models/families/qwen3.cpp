// Qwen3 (Yang et al. 2025; Hugging Face's Qwen3ForCausalLM): Llama with RMS norms of queries and keys.
#include "multihead/models/families/llama_kind.h"

namespace mh {
namespace {

FolderPlan read_qwen3(std::string_view json, std::string_view name) {
  return read_llama_kind(
      {.model_type = "qwen3", .query_key_norm = QueryKeyNorm::kRms, .window = LlamaKind::Window::kAsAsked},
      {.vocabulary = 151936,
       .positions = 32768,
       .d_ff = 22016,
       .key_heads = 32,
       .d_head = 128,
       .start = std::nullopt,
       .end = std::nullopt,
       .window = 4096},
      json, name);
}

}  // namespace

extern const Family kQwen3Family;
const Family kQwen3Family = {"qwen3", "a causal decoder of Qwen3ForCausalLM", read_qwen3};

}  // namespace mh
