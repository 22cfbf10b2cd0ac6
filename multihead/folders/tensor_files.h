// TensorFiles: the named tensors of one model: those of model.safetensors, of the shards that
// model.safetensors.index.json lists, or of a GGUF file (gguf_weights.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/stored_matrix.h"
#include "multihead/io/safetensors.h"
#include "multihead/tensor/weight.h"

namespace mh {

class FolderSource;

/// Collects the differences between the files and a model, so that one message lists all of them.
class Differences {
 public:
  /// A name is listed once, even if several parts of the tensor are missing.
  void missing(const std::string& name) {
    if (std::find(missing_.begin(), missing_.end(), name) == missing_.end()) missing_.push_back(name);
  }
  void unused(const std::string& name) { unused_.push_back(name); }
  void other(std::string clause) { others_.push_back(std::move(clause)); }

  /// Throws FormatError "FILE does not fit DESCRIPTION: missing: ...; shape of X: ...; not used: ...; REMEDY".
  void throw_if_any(const std::string& file, const std::string& description, const std::string& remedy) const;

 private:
  std::vector<std::string> missing_, unused_, others_;
};

/// Numbers in C order, as a file has them or converted to float32. Valid as long as `keeper` lives.
struct StoredNumbers {
  const std::byte* data = nullptr;
  NumberType type = NumberType::kFloat32;
  std::shared_ptr<const void> keeper = nullptr;
  bool in_file = false;  // mapped from a file

  static StoredNumbers of(std::vector<float> numbers);
};

/// A tensor of a file of weights, whatever the file's format.
struct FileTensor {
  std::vector<int64_t> shape;
  std::string type;  // as the file calls it
  /// In the file. Of a sum with an adapter, which no file has: 0.
  int64_t bytes = 0;
  /// Maps the numbers, or converts them; empty when they are no floating-point numbers.
  std::function<StoredNumbers()> numbers;
  /// How many numbers are infinite or NaN, found where they lie: it takes no memory. Empty as `numbers` is.
  std::function<int64_t()> not_finite;
  /// Converts rows of a matrix when they are read; null when the numbers need no conversion, or are no matrix.
  std::shared_ptr<const NumberSource> source = nullptr;

  /// Maps the integers of a tensor of I8; empty of others.
  std::function<SafetensorsFile::Mapped()> integers = nullptr;

  /// Makes it a matrix of numbers that are converted.
  void convert(std::shared_ptr<const NumberSource> from);
  int64_t elements() const;
};

/// The files that TensorFiles::open() reads: model.safetensors, or the shards of its index and that. Throws as it does of the index.
std::set<std::string> tensor_file_names(const FolderSource& folder);

class TensorFiles {
 public:
  using Tensors = std::map<std::string, FileTensor, std::less<>>;

  /// Opens model.safetensors, or the shards of its index. Throws FileError or FormatError on a missing or damaged file, and
  /// on an index that names a file outside of the folder or missing tensors.
  static TensorFiles open(const FolderSource& folder);
  /// Uses one open file. Errors call it `name`.
  explicit TensorFiles(SafetensorsFile file, std::string name);
  TensorFiles(Tensors tensors, std::string name) : name_(std::move(name)), tensors_(std::move(tensors)) {}

  /// The name in error messages.
  const std::string& name() const { return name_; }
  bool contains(std::string_view tensor) const { return find(tensor) != tensors_.end(); }
  /// Tensors that are asked for by another name are those that `in_file` gives for it.
  void call_otherwise(std::function<std::string(std::string_view)> in_file) { in_file_ = std::move(in_file); }
  /// Throws FormatError when there is no such tensor.
  const FileTensor& tensor(std::string_view name) const;
  /// A tensor's numbers in C order as float32. Throws FormatError also when they are no floating-point numbers.
  std::vector<float> floats(std::string_view name) const;
  /// Whether two tensors have the same shape and the same numbers. Throws FormatError when one of them is not there.
  bool same(std::string_view a, std::string_view b) const;
  /// All tensors by their names, sorted.
  const Tensors& tensors() const { return tensors_; }
  /// How many numbers all tensors have together.
  double elements() const;
  /// Lines worth knowing of where they come from.
  const std::vector<std::string>& remarks() const { return remarks_; }
  void add_remark(std::string line) { remarks_.push_back(std::move(line)); }

 private:
  TensorFiles() = default;
  Tensors::const_iterator find(std::string_view tensor) const;
  void add(const std::shared_ptr<const SafetensorsFile>& file);

  std::string name_;
  Tensors tensors_;
  std::function<std::string(std::string_view)> in_file_;
  std::vector<std::string> remarks_;
};

}  // namespace mh
