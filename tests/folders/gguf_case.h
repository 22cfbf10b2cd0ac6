// A small right Llama in GGUF, for tests that damage it: 3 heads that share one key, an output of its own.
#pragma once

#include <string>
#include <vector>

#include "tests/io/gguf_bytes.h"

namespace mh::test {

inline GgufSpec small_gguf() {
  constexpr uint32_t kVocabulary = 11, kWidth = 12, kHead = 4, kHidden = 7, kPositions = 17;
  GgufSpec spec;
  spec.values = {{"general.architecture", gguf_string("llama")},
                 {"llama.block_count", gguf_u32(1)},
                 {"llama.context_length", gguf_u32(kPositions)},
                 {"llama.embedding_length", gguf_u32(kWidth)},
                 {"llama.feed_forward_length", gguf_u32(kHidden)},
                 {"llama.attention.head_count", gguf_u32(3)},
                 {"llama.attention.head_count_kv", gguf_u32(1)},
                 {"llama.attention.layer_norm_rms_epsilon", gguf_f32(1e-5f)},
                 {"llama.rope.freq_base", gguf_f32(1000)},
                 {"llama.rope.dimension_count", gguf_u32(kHead)},
                 {"llama.vocab_size", gguf_u32(kVocabulary)},
                 {"tokenizer.ggml.model", gguf_string("gpt2")},
                 {"tokenizer.ggml.pre", gguf_string("smollm")},
                 {"tokenizer.ggml.tokens",
                  gguf_strings({"<end>", "<pad>", "a", "b", "c", "ab", "abc", "1", "Ġ", "<tag>", "Ġa"})},
                 {"tokenizer.ggml.token_type", gguf_ints({3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 1})},
                 {"tokenizer.ggml.merges", gguf_strings({"a b", "ab c", "Ġ a"})},
                 {"tokenizer.ggml.bos_token_id", gguf_u32(0)},
                 {"tokenizer.ggml.eos_token_id", gguf_u32(0)},
                 {"tokenizer.ggml.padding_token_id", gguf_u32(1)},
                 {"tokenizer.ggml.add_bos_token", gguf_bool(0)}};
  spec.tensors = {gguf_zeros("token_embd.weight", {kWidth, kVocabulary}),
                  gguf_zeros("output.weight", {kWidth, kVocabulary}),
                  gguf_zeros("output_norm.weight", {kWidth}),
                  gguf_zeros("blk.0.attn_norm.weight", {kWidth}),
                  gguf_zeros("blk.0.attn_q.weight", {kWidth, 3 * kHead}),
                  gguf_zeros("blk.0.attn_k.weight", {kWidth, kHead}),
                  gguf_zeros("blk.0.attn_v.weight", {kWidth, kHead}),
                  gguf_zeros("blk.0.attn_output.weight", {3 * kHead, kWidth}),
                  gguf_zeros("blk.0.ffn_norm.weight", {kWidth}),
                  gguf_zeros("blk.0.ffn_gate.weight", {kWidth, kHidden}),
                  gguf_zeros("blk.0.ffn_up.weight", {kWidth, kHidden}),
                  gguf_zeros("blk.0.ffn_down.weight", {kHidden, kWidth})};
  return spec;
}

}  // namespace mh::test
