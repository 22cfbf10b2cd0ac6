// Reads GGUF, ggml's format for models: one file with metadata, a tokenizer and weights, which are often
// quantised. Source: the GGUF specification (ggml, docs/gguf.md). All numbers are little-endian, nothing is
// aligned before the data.
//
//   "GGUF", u32 version (2 or 3), u64 number of tensors, u64 number of metadata values
//   each value    text KEY, u32 type, the value:
//                 a number; a text: u64 bytes, UTF-8; a list: u32 type of its items, u64 how many, the items
//   each tensor   text NAME, u32 dimensions, u64 sizes[dimensions], u32 type, u64 offset
//   the data      from the next multiple of the alignment (general.alignment, 32 without it); each tensor
//                 begins at the multiple of the alignment that follows the tensor before it
//
// The first of the sizes is that of the numbers that lie next to each other, so a matrix [rows, cols] has the
// sizes {cols, rows}.
//
// The file is not trusted. It is mapped into memory, and every count and offset is held against its size
// before it is used; memory is taken only for a list of keys and tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/io/gguf_blocks.h"

namespace mh {

struct GgufTensor {
  std::string_view name;
  std::vector<int64_t> shape;  // in C order, as elsewhere in this library: the reverse of the file's
  GgufType type = GgufType::kF32;
  std::span<const std::byte> bytes;

  int64_t elements() const;
};

/// An open file. Any number of threads may read at once. Names and texts are views of the file and valid as
/// long as it, or a copy of it, lives.
class GgufFile {
 public:
  /// Reads and checks everything but the numbers. Throws FileError, or FormatError that says what is wrong
  /// with the file.
  static GgufFile open(const std::filesystem::path& path);
  /// The same for bytes in memory; `name` is what errors call them.
  static GgufFile from_bytes(std::string bytes, std::string name);

  /// One model that was cut into several files ("m-00001-of-00002.gguf"): the metadata of the first, and the tensors of all.
  /// Throws FormatError when a tensor is there twice.
  static GgufFile joined(const std::vector<GgufFile>& parts);

  const std::string& name() const;

  bool contains(std::string_view key) const;
  /// All keys of the metadata, sorted.
  std::vector<std::string_view> keys() const;
  /// The value of a key that is there, in a few words: "3", "true", "\"llama\"", "a list of i32".
  std::string described(std::string_view key) const;
  /// Its type and the value itself, as they stand in the file, for a copy. REQUIRES: it is there.
  std::string_view stored(std::string_view key) const;
  /// The values of the metadata; nothing when the key is missing. Throw FormatError naming the key when the
  /// value has another type (any type of integer, and of floating point, will do) or is out of range.
  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> number(std::string_view key, double low, double high) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  /// How many items the list has; 0 when the key is missing.
  int64_t items(std::string_view key) const;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const;

  /// All tensors in the order of their bytes.
  const std::vector<GgufTensor>& tensors() const;
  /// Null when there is no such tensor.
  const GgufTensor* tensor(std::string_view name) const;
  /// The tensor's numbers in C order, converted to float32.
  std::vector<float> floats(const GgufTensor& tensor) const;
  /// How many of its numbers are infinite or NaN; takes no memory.
  int64_t not_finite(const GgufTensor& tensor) const;
  /// Keeps the file's bytes where they are.
  std::shared_ptr<const void> keeper() const;
  /// Whether they are mapped from a file, and not in memory.
  bool is_mapped() const;

 private:
  struct State;
  explicit GgufFile(std::shared_ptr<State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace mh
