#include "multihead/folders/gguf_requantise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/platform.h"
#include "multihead/base/thread_pool.h"
#include "multihead/io/gguf_writer.h"
#include "multihead/io/quantise_blocks.h"

namespace mh {
namespace {

constexpr uint32_t kMostlyQ4_0 = 2, kMostlyQ8_0 = 7;  // enum llama_ftype
constexpr uint32_t kQuantisationVersion = 2;          // GGML_QNT_VERSION
constexpr const char *kFileTypeKey = "general.file_type", *kVersionKey = "general.quantization_version";

GgufType gguf_type_of(BlockType type) {
  return type == BlockType::kQ8_0 ? GgufType::kQ8_0 : GgufType::kQ4_0;
}

/// A matrix of the same numbers in blocks of the type; nothing where it stays as it is.
std::optional<GgufType> smaller_type(const GgufFile& file, const GgufTensor& tensor, BlockType type) {
  if (tensor.shape.size() != 2 || !tensor.name.ends_with(".weight")) return std::nullopt;
  const std::string_view output =
      file.tensor("output.weight") != nullptr ? "output.weight" : "token_embd.weight";
  const BlockType wanted = tensor.name == output ? BlockType::kQ8_0 : type;
  const BlockLayout layout = block_layout(wanted);
  const int64_t cols = tensor.shape.back();
  if (cols % layout.numbers != 0) return std::nullopt;
  const bool smaller = tensor.elements() / layout.numbers * layout.bytes < std::ssize(tensor.bytes);
  return smaller ? std::optional(gguf_type_of(wanted)) : std::nullopt;
}

/// The metadata as it is, but for how the tensors are stored, and of what a file was cut into or quantised with.
std::vector<GgufOutputValue> requantised_values(const GgufFile& file, BlockType type) {
  std::vector<GgufOutputValue> values;
  for (const std::string_view key : file.keys()) {
    if (key == kFileTypeKey || key == kVersionKey || key.starts_with("split.") ||
        key.starts_with("quantize."))
      continue;
    values.push_back({.key = std::string(key), .bytes = std::string(file.stored(key))});
  }
  values.push_back(GgufOutputValue::of(kFileTypeKey, type == BlockType::kQ8_0 ? kMostlyQ8_0 : kMostlyQ4_0));
  values.push_back(GgufOutputValue::of(kVersionKey, kQuantisationVersion));
  return values;
}

/// Rows of a tensor in another type, by all threads.
void quantise_rows(const GgufTensor& tensor, BlockType type, int64_t begin, int64_t end,
                   std::span<std::byte> to) {
  const auto cols = static_cast<size_t>(tensor.shape.back());
  const size_t bytes_before = tensor.bytes.size() / static_cast<size_t>(tensor.shape.front());
  const size_t bytes_after = to.size() / static_cast<size_t>(end - begin);
  parallel_for(end - begin, [&](int64_t i) {
    thread_local std::vector<float> numbers;
    numbers.resize(cols);
    read_gguf_blocks(tensor.type,
                     tensor.bytes.subspan(static_cast<size_t>(begin + i) * bytes_before, bytes_before),
                     numbers);
    if (quantise_blocks(type, numbers, to.subspan(static_cast<size_t>(i) * bytes_after, bytes_after))) return;
    throw Error(
        fmt::format("tensor {} has numbers that are not finite, or too large for the float16 scale of a "
                    "block; nothing was written",
                    tensor.name));
  });
}

}  // namespace

void requantise_gguf(const GgufFile& file, BlockType type, const std::filesystem::path& to) {
  MH_ASSERT(can_quantise(type));
  bool changes = false;
  std::vector<GgufOutputTensor> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::optional<GgufType> smaller = smaller_type(file, tensor, type);
    changes = changes || smaller;
    tensors.push_back(
        {.name = std::string(tensor.name),
         .shape = tensor.shape,
         .type = smaller.value_or(tensor.type),
         .rows = [&file, &tensor, smaller](int64_t begin, int64_t end, std::span<std::byte> out) {
           if (smaller) {
             quantise_rows(tensor, *gguf_type_facts(static_cast<uint32_t>(*smaller))->blocks, begin, end,
                           out);
           } else {
             const size_t row = out.size() / static_cast<size_t>(end - begin);
             std::memcpy(out.data(), tensor.bytes.data() + static_cast<size_t>(begin) * row, out.size());
           }
           const int64_t rows = tensor.elements() / tensor.shape.back();
           if (end == rows && file.is_mapped()) release_mapped(tensor.bytes.data(), tensor.bytes.size());
         }});
  }
  const char* const name = gguf_type_facts(static_cast<uint32_t>(gguf_type_of(type)))->name;
  if (!changes)
    throw UsageError(
        fmt::format("{}: no matrix would be smaller in {}: each takes no more bytes now, or has rows that "
                    "are no multiple of {}",
                    file.name(), name, block_layout(type).numbers));
  write_gguf(to, requantised_values(file, type), tensors);
}

}  // namespace mh
