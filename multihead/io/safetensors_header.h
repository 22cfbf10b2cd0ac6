// The JSON part of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/io/safetensors.h"

namespace mh {

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in the order of their bytes
  std::map<std::string, size_t, std::less<>> index;
  std::map<std::string, std::string> metadata;
};

/// Reads the header `text` and checks it against the `data_bytes` bytes that follow it: each name once,
/// sizes that match type and shape, no hole, no overlap, no byte left over. Throws FormatError that starts
/// with `name`.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& name);

}  // namespace mh
