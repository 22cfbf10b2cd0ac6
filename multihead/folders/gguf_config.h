// Reads what a GGUF file says about its model: the config.json of Hugging Face that says the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/folders/gguf_architecture.h"
#include "multihead/io/gguf.h"

namespace mh {

/// Returns the config.json that says the same. Throws FormatError naming the key of the metadata that is
/// missing, out of range, or asks for something that is not supported: another architecture, experts,
/// positions that the architecture does not have.
std::string gguf_config_json(const GgufFile& file);

struct GgufHeads {
  int64_t heads = 1, key_heads = 1;
};
/// Returns how many heads each attention has. Throws FormatError as above.
GgufHeads gguf_heads(const GgufFile& file);

/// The value of a key. Throws FormatError when it is missing.
template <class T>
T gguf_required(const GgufFile& file, std::string_view key, std::optional<T> value) {
  if (!value) throw FormatError(file.name() + ": \"" + std::string(key) + "\" is missing");
  return *value;
}

/// As people write it: 1e-05 rather than the float's 9.999999747378752e-06.
double gguf_shortest(double value);

}  // namespace mh
