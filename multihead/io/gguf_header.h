// The part of a GGUF file before the data: its metadata and the list of its tensors (gguf.h has the format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/io/gguf.h"
#include "multihead/io/gguf_value.h"

namespace mh {

/// The key of the alignment of tensors, and what it is without one.
inline constexpr const char* kGgufAlignmentKey = "general.alignment";
inline constexpr uint64_t kGgufUsualAlignment = 32;

struct GgufHeader {
  std::vector<GgufValue> values;    // by key
  std::vector<GgufTensor> tensors;  // in the order of their bytes

  /// Null when there is no such key.
  const GgufValue* find(std::string_view key) const;
};

/// Reads and checks the header and where the tensors lie. Its views are of `bytes`. Throws FormatError, one
/// line that starts with `name`.
GgufHeader parse_gguf_header(std::span<const std::byte> bytes, const std::string& name);

}  // namespace mh
