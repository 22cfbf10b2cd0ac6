// Reads what a GGUF file says about its model. So far the architecture "llama" is read; the result is the
// config.json of LlamaForCausalLM, which families/llama.cpp understands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "multihead/folders/families/family.h"
#include "multihead/io/gguf.h"

namespace mh {

/// Returns the config.json that says the same. Throws FormatError naming the key of the metadata that is
/// missing, out of range, or asks for something that is not supported: another architecture, experts,
/// positions that neither "linear" nor "llama3" describes.
std::string gguf_config_json(const GgufFile& file);

struct GgufHeads {
  int64_t heads = 1, key_heads = 1;
};
/// Returns how many heads each attention has. Throws FormatError as above.
GgufHeads gguf_heads(const GgufFile& file);

/// Returns where a GGUF file has a parameter.
TensorPlace gguf_place(std::string_view parameter);

}  // namespace mh
