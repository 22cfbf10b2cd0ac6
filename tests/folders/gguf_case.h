// A small right Llama in GGUF, for tests that damage or change it: 3 heads that share one key, an output of its own.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/io/gguf_bytes.h"

namespace mh::test {

/// head: numbers of one; hidden: of the feed-forward layer.
inline GgufSpec small_gguf(uint32_t head = 4, uint32_t hidden = 7) {
  constexpr uint32_t kVocabulary = 11, kPositions = 17;
  const uint32_t width = 3 * head;
  GgufSpec spec;
  spec.values = {{"general.architecture", gguf_string("llama")},
                 {"llama.block_count", gguf_u32(1)},
                 {"llama.context_length", gguf_u32(kPositions)},
                 {"llama.embedding_length", gguf_u32(width)},
                 {"llama.feed_forward_length", gguf_u32(hidden)},
                 {"llama.attention.head_count", gguf_u32(3)},
                 {"llama.attention.head_count_kv", gguf_u32(1)},
                 {"llama.attention.layer_norm_rms_epsilon", gguf_f32(1e-5f)},
                 {"llama.rope.freq_base", gguf_f32(1000)},
                 {"llama.rope.dimension_count", gguf_u32(head)},
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
  spec.tensors = {gguf_zeros("token_embd.weight", {width, kVocabulary}),
                  gguf_zeros("output.weight", {width, kVocabulary}),
                  gguf_zeros("output_norm.weight", {width}),
                  gguf_zeros("blk.0.attn_norm.weight", {width}),
                  gguf_zeros("blk.0.attn_q.weight", {width, 3 * head}),
                  gguf_zeros("blk.0.attn_k.weight", {width, head}),
                  gguf_zeros("blk.0.attn_v.weight", {width, head}),
                  gguf_zeros("blk.0.attn_output.weight", {3 * head, width}),
                  gguf_zeros("blk.0.ffn_norm.weight", {width}),
                  gguf_zeros("blk.0.ffn_gate.weight", {width, hidden}),
                  gguf_zeros("blk.0.ffn_up.weight", {width, hidden}),
                  gguf_zeros("blk.0.ffn_down.weight", {hidden, width})};
  return spec;
}

/// Random numbers in place of its zeros.
inline GgufSpec with_random_numbers(GgufSpec spec, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (GgufTensorSpec& tensor : spec.tensors) {
    const size_t count = tensor.data.size() / sizeof(float);
    tensor.data.clear();
    for (size_t i = 0; i < count; ++i) tensor.data += little_endian(normal(random) / 3);
  }
  return spec;
}

}  // namespace mh::test
