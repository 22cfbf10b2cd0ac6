// Writes GGUF (io/gguf.h has the format), version 3: metadata, the list of tensors, and the tensors one after another, which need
// not be in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/io/gguf.h"

namespace mh {

/// A value of the metadata: its type and itself as they stand in a file.
struct GgufOutputValue {
  std::string key;
  std::string bytes;

  static GgufOutputValue of(std::string_view key, uint32_t number);
};

struct GgufOutputTensor {
  std::string name;
  std::vector<int64_t> shape;  // in C order
  GgufType type = GgufType::kF32;
  /// Writes rows [begin, end) to `to`, which has as many bytes.
  std::function<void(int64_t begin, int64_t end, std::span<std::byte> to)> rows;

  /// Of the last dimension.
  int64_t row_bytes() const;
  int64_t row_count() const;
};

/// Writes the file in one step (base/file.h). It is aligned as the value general.alignment says. Throws FileError, Interrupted, and
/// what `rows` throws; then nothing is written. REQUIRES: names and keys differ, rows are whole blocks.
void write_gguf(const std::filesystem::path& path, std::span<const GgufOutputValue> values,
                std::span<const GgufOutputTensor> tensors);

}  // namespace mh
