// FolderSource: where the files of a model folder come from. The same files may lie in a directory, in memory (what another
// process sent), or be what a GGUF file says (gguf_folder.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/folders/family.h"
#include "multihead/folders/folder_tokenizers.h"
#include "multihead/io/safetensors.h"

namespace mh {

/// Files have names such as "config.json". Any number of threads may read at once.
class FolderSource {
 public:
  virtual ~FolderSource() = default;

  /// What messages call a file of it: "model/config.json".
  virtual std::string path_of(std::string_view file) const = 0;
  virtual bool has(std::string_view file) const = 0;
  /// The bytes of a file. Throws FileError that names it when it is not there or cannot be read.
  virtual std::string read(std::string_view file) const = 0;
  /// Opens a file of tensors; its numbers may stay where they are. Throws FileError or FormatError.
  virtual SafetensorsFile open_tensors(std::string_view file) const = 0;
  /// The small files that say something of the model or its tokenizers, sorted: what a copy of the model needs besides
  /// its tensors.
  virtual std::vector<std::string> small_files() const = 0;

  // What the files describe. A source that knows it otherwise says so itself.
  /// How to make the model. Throws as read_plan().
  virtual FolderPlan plan() const;
  /// The tensors of model.safetensors, or of the shards of its index, with the adapter beside them (folders/adapter.h).
  virtual TensorFiles tensors() const;
  virtual FolderTokenizers tokenizers() const;
};

/// A directory.
class DirectoryFolder final : public FolderSource {
 public:
  explicit DirectoryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::string path_of(std::string_view file) const override { return (path_ / file).string(); }
  bool has(std::string_view file) const override;
  std::string read(std::string_view file) const override;
  SafetensorsFile open_tensors(std::string_view file) const override;
  /// *.json, *.jinja, *.txt, *.model and *.spm but for the index of shards and an adapter, which tensors() has put on; of a folder of sentence-transformers those of
  /// its modules, too.
  std::vector<std::string> small_files() const override;

  /// The first file that is another one now than when it was first read, or was written to; empty: there is none.
  std::string changed() const;

 private:
  struct Stamp {
    uint64_t inode = 0, size = 0;
    int64_t seconds = 0, nanoseconds = 0;  // when it was last written to
    bool operator==(const Stamp&) const = default;
  };
  static Stamp stamp_of(const std::filesystem::path& file);
  void note(std::string_view file) const;

  std::filesystem::path path_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Stamp, std::less<>> read_;
};

/// Files in memory.
class MemoryFolder final : public FolderSource {
 public:
  using Files = std::map<std::string, std::string, std::less<>>;
  /// Messages call a file "NAME, config.json".
  MemoryFolder(Files files, std::string name) : files_(std::move(files)), name_(std::move(name)) {}

  std::string path_of(std::string_view file) const override { return name_ + ", " + std::string(file); }
  bool has(std::string_view file) const override { return files_.contains(file); }
  std::string read(std::string_view file) const override;
  SafetensorsFile open_tensors(std::string_view file) const override;
  std::vector<std::string> small_files() const override;

 private:
  Files files_;
  std::string name_;
};

}  // namespace mh
