// Reads and writes safetensors, Hugging Face's format for the weights of a model: a JSON header that names
// tensors, then their bytes. Reading is as strict as the reference: each name once, sizes that match dtype
// and shape, bytes without holes or overlap, and no byte of the file left over.
//
//   8 bytes   length n of the header, little-endian
//   n bytes   {"__metadata__": {text: text},
//              NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
//   the rest  the tensors in C order; offsets count from here
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "multihead/base/matrix_view.h"

namespace mh {

enum class DType {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64
};

/// Returns the name in files, e.g. "BF16".
const char* dtype_name(DType dtype);
/// Returns the bytes of one element.
int64_t dtype_size(DType dtype);

struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes [begin, end) of the data part
  uint64_t end = 0;

  int64_t elements() const { return static_cast<int64_t>(end - begin) / dtype_size(dtype); }
};

/// An open file. A tensor is read when it is asked for; any number of threads may read at once.
class SafetensorsFile {
 public:
  /// Reads and checks the header. Throws FileError, or FormatError that says what is wrong with it.
  static SafetensorsFile open(const std::filesystem::path& path);
  /// The same for bytes in memory; `name` is what errors call them.
  static SafetensorsFile from_bytes(std::string bytes, std::string name);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  /// All tensors in the order of their bytes.
  const std::vector<TensorEntry>& entries() const;
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  /// Throws FormatError when there is no such tensor; so do the functions below.
  const TensorEntry& entry(std::string_view name) const;
  const std::vector<int64_t>& shape(std::string_view name) const { return entry(name).shape; }
  const std::map<std::string, std::string>& metadata() const;

  /// The elements in C order; F32, F16, BF16 exactly, F64 rounded. Throws FormatError on another dtype.
  std::vector<float> floats(std::string_view name) const;
  /// The same, written to `out`. Throws ShapeError unless `out` has as many.
  void read_floats(std::string_view name, std::span<float> out) const;
  /// The elements of BOOL, U8, I8, I16, U16, I32, U32, I64 or U64 below 2^63. Throws FormatError on another
  /// dtype.
  std::vector<int64_t> integers(std::string_view name) const;
  /// The bytes as they are.
  std::string bytes(std::string_view name) const;
  /// Where the bytes of a tensor lie in the file, which is mapped into memory instead of copied. Valid as
  /// long as `keeper` lives. Meanwhile the file may be replaced or removed, but not written to or
  /// shortened.
  struct Mapped {
    const std::byte* data = nullptr;
    std::shared_ptr<const void> keeper;
    bool in_file = false;  // in the mapped file; false: the "file" is bytes in memory
  };
  Mapped mapped(std::string_view name) const;

 private:
  struct State;
  explicit SafetensorsFile(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Returns what a file with these tensors begins with: the length of the header and the header, padded with spaces to a
/// multiple of 8. The bytes of the tensors follow in this order, one behind the other.
std::string safetensors_header(std::span<const TensorEntry> entries,
                               const std::map<std::string, std::string>& metadata = {});

/// A tensor to write: float32 (one span, or the rows of a matrix), int64 or int32, in C order.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::variant<std::span<const float>, ConstMatrixView, std::span<const int64_t>, std::span<const int32_t>>
      data;
};

/// Returns the bytes of a file with these tensors, sorted as the reference does, by falling alignment and
/// then by name; the header is padded with spaces to a multiple of 8. The same tensors give the same bytes
/// in any order. Throws ShapeError unless the product of each shape is the number of elements, UsageError
/// when a name is there twice or is "__metadata__".
std::string write_safetensors(std::span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace mh
