#include "multihead/io/gguf_writer.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "multihead/base/file.h"
#include "multihead/io/gguf_header.h"
#include "multihead/io/gguf_value.h"

namespace mh {
namespace {

template <class T>
void put(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void put_gguf_text(std::string& bytes, std::string_view text) {
  put(bytes, uint64_t{text.size()});
  bytes += text;
}
void pad(std::string& bytes, uint64_t alignment) {
  bytes.append((alignment - bytes.size() % alignment) % alignment, '\0');
}

uint64_t bytes_of(const GgufOutputTensor& tensor) {
  return static_cast<uint64_t>(tensor.row_count() * tensor.row_bytes());
}

/// What general.alignment says, an unsigned number of 32 bits in files that anybody writes.
uint64_t output_alignment(std::span<const GgufOutputValue> values) {
  for (const GgufOutputValue& value : values) {
    uint32_t type = 0, number = 0;
    if (value.key != kGgufAlignmentKey || value.bytes.size() != sizeof type + sizeof number) continue;
    std::memcpy(&type, value.bytes.data(), sizeof type);
    std::memcpy(&number, value.bytes.data() + sizeof type, sizeof number);
    if (type == static_cast<uint32_t>(GgufValueType::kU32)) return number;
  }
  return kGgufUsualAlignment;
}

std::string gguf_header_bytes(std::span<const GgufOutputValue> values,
                              std::span<const GgufOutputTensor> tensors, uint64_t alignment) {
  constexpr uint32_t kVersion = 3;
  std::string bytes = "GGUF";
  put(bytes, kVersion);
  put(bytes, uint64_t{tensors.size()});
  put(bytes, uint64_t{values.size()});
  for (const auto& [key, value] : values) {
    put_gguf_text(bytes, key);
    bytes += value;
  }
  uint64_t at = 0;
  for (const GgufOutputTensor& tensor : tensors) {
    put_gguf_text(bytes, tensor.name);
    put(bytes, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      put(bytes, static_cast<uint64_t>(*size));
    put(bytes, static_cast<uint32_t>(tensor.type));
    put(bytes, at);
    at = (at + bytes_of(tensor) + alignment - 1) / alignment * alignment;
  }
  pad(bytes, alignment);
  return bytes;
}

}  // namespace

GgufOutputValue GgufOutputValue::of(std::string_view key, uint32_t number) {
  GgufOutputValue value{.key = std::string(key), .bytes = {}};
  put(value.bytes, static_cast<uint32_t>(GgufValueType::kU32));
  put(value.bytes, number);
  return value;
}

int64_t GgufOutputTensor::row_bytes() const {
  const GgufTypeFacts facts = gguf_type_facts(static_cast<uint32_t>(type)).value();
  return shape.back() / facts.block * facts.bytes;
}
int64_t GgufOutputTensor::row_count() const {
  int64_t product = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
  return product;
}

void write_gguf(const std::filesystem::path& path, std::span<const GgufOutputValue> values,
                std::span<const GgufOutputTensor> tensors) {
  constexpr int64_t kPiece = int64_t{4} << 20;
  const uint64_t alignment = output_alignment(values);
  std::string piece = gguf_header_bytes(values, tensors, alignment);
  bool begun = false;
  size_t next = 0;
  int64_t row = 0;
  write_pieces_atomically(path, [&]() -> std::string_view {
    if (!begun) {
      begun = true;
      return piece;
    }
    if (next == tensors.size()) return {};
    const GgufOutputTensor& tensor = tensors[next];
    const int64_t bytes = tensor.row_bytes(), rows = tensor.row_count();
    const int64_t end = std::min(rows, row + std::max<int64_t>(1, kPiece / bytes));
    piece.resize(static_cast<size_t>((end - row) * bytes));
    tensor.rows(row, end, std::as_writable_bytes(std::span(piece)));
    row = end;
    if (row == rows) {
      row = 0;
      ++next;
      piece.append((alignment - bytes_of(tensor) % alignment) % alignment,
                   '\0');  // ggml pads the last one, too
    }
    return piece;
  });
}

}  // namespace mh
