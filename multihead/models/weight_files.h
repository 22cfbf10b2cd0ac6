// WeightFiles: the safetensors files of one model: model.safetensors, or the shards that
// model.safetensors.index.json lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/io/safetensors.h"

namespace mh {

/// Collects the differences between the files and a model, so that one message lists all of them.
class Differences {
 public:
  /// A name is listed once, even if several parts of the tensor are missing.
  void missing(const std::string& name) {
    if (std::find(missing_.begin(), missing_.end(), name) == missing_.end()) missing_.push_back(name);
  }
  void unused(const std::string& name) { unused_.push_back(name); }
  void other(std::string clause) { others_.push_back(std::move(clause)); }

  /// Throws FormatError "FILE does not fit config.json: missing: ...; shape of X: ...; not used: ...".
  void throw_if_any(const std::string& file) const;

 private:
  std::vector<std::string> missing_, unused_, others_;
};

class WeightFiles {
 public:
  /// Opens the files of a model folder. Throws FileError or FormatError on a missing or damaged file, and
  /// on an index that names a file outside of the folder or missing tensors.
  static WeightFiles open(const std::filesystem::path& folder);
  /// Uses one open file. Errors call it `name`.
  explicit WeightFiles(SafetensorsFile file, std::string name);

  /// The name in error messages.
  const std::string& name() const { return name_; }
  bool contains(std::string_view tensor) const { return where_.contains(tensor); }
  /// The file that holds a tensor. Throws FormatError when none does.
  const SafetensorsFile& file_of(std::string_view tensor) const;
  const TensorEntry& entry(std::string_view tensor) const { return file_of(tensor).entry(tensor); }
  /// The names of all tensors, sorted.
  std::vector<std::string> tensors() const;
  /// How many numbers all tensors have together.
  double elements() const;

 private:
  WeightFiles() = default;
  void add(SafetensorsFile file);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> where_;  // tensor -> file
};

}  // namespace mh
