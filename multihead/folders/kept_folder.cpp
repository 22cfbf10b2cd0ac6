#include "multihead/folders/kept_folder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/folder_source.h"

namespace mh {
namespace {

/// Small files in memory, beside the tensors of another source.
class KeptFiles final : public FolderSource {
 public:
  KeptFiles(const ModelFolder& folder, std::span<const std::string_view> without)
      : small_(read_small(*folder.source, without), folder.path.string()),
        tensors_(folder.source->tensors()) {}

  std::string path_of(std::string_view file) const override { return small_.path_of(file); }
  bool has(std::string_view file) const override { return small_.has(file); }
  std::string read(std::string_view file) const override { return small_.read(file); }
  SafetensorsFile open_tensors(std::string_view file) const override { return small_.open_tensors(file); }
  std::vector<std::string> small_files() const override { return small_.small_files(); }
  TensorFiles tensors() const override { return tensors_; }

 private:
  static MemoryFolder::Files read_small(const FolderSource& of, std::span<const std::string_view> without) {
    MemoryFolder::Files files;
    for (const std::string& name : of.small_files()) {
      if (std::find(without.begin(), without.end(), name) == without.end()) files[name] = of.read(name);
    }
    return files;
  }

  MemoryFolder small_;
  TensorFiles tensors_;
};

}  // namespace

ModelFolder kept_folder(const ModelFolder& folder, std::span<const std::string_view> without) {
  if (!folder.source) throw UsageError("this model was not read from a folder, whose files could be kept");
  ModelFolder kept;
  kept.model_type = folder.model_type;
  kept.not_read = folder.not_read;
  kept.source = std::make_shared<const KeptFiles>(folder, without);
  return kept;
}

}  // namespace mh
