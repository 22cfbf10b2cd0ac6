// The safetensors files of one model: model.safetensors, or the shards that model.safetensors.index.json
// lists.
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

/// What does not fit between a file and a model, by kind.
class Differences {
 public:
  /// Once, also when several parts of it are missed.
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
  /// Of this model folder. Throws FileError or FormatError: no such file, a damaged one, an index that names
  /// a file outside of the folder or tensors that are not there.
  static WeightFiles open(const std::filesystem::path& folder);
  /// One file. `name` is what errors call it.
  explicit WeightFiles(SafetensorsFile file, std::string name);

  /// What errors call them.
  const std::string& name() const { return name_; }
  bool contains(std::string_view tensor) const { return where_.contains(tensor); }
  /// The file that holds a tensor. Throws FormatError when none does.
  const SafetensorsFile& file_of(std::string_view tensor) const;
  const TensorEntry& entry(std::string_view tensor) const { return file_of(tensor).entry(tensor); }
  /// All tensors, by name.
  std::vector<std::string> tensors() const;
  /// Numbers in all of them.
  double elements() const;

 private:
  WeightFiles() = default;
  void add(SafetensorsFile file);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> where_;  // tensor -> file
};

}  // namespace mh
