#include "multihead/folders/folder_source.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/adapter.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/int8_matrices.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexEnd = ".index.json";

bool is_small_file(const fs::path& name) {
  constexpr std::array<std::string_view, 5> kEndings = {".json", ".jinja", ".txt", ".model", ".spm"};
  const std::string file = name.filename().string();
  return !file.ends_with(kIndexEnd) && !file.starts_with('.') && file != kAdapterConfigFile &&
         std::find(kEndings.begin(), kEndings.end(), name.extension().string()) != kEndings.end();
}

}  // namespace

FolderPlan FolderSource::plan() const {
  return read_plan(read(kConfigFile), path_of(kConfigFile));
}
TensorFiles FolderSource::tensors() const {
  TensorFiles files = TensorFiles::open(*this);
  if (has(kConfigFile)) {
    const std::string name = path_of(kConfigFile);
    if (says_int8(parse_json_strictly(read(kConfigFile), name), name)) files = with_int8_matrices(files);
  }
  return with_adapter(std::move(files), *this);
}
FolderTokenizers FolderSource::tokenizers() const {
  return read_folder_tokenizers(*this);
}

DirectoryFolder::Stamp DirectoryFolder::stamp_of(const fs::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return {};
  return {.inode = found.st_ino,
          .size = static_cast<uint64_t>(found.st_size),
          .seconds = found.st_mtim.tv_sec,
          .nanoseconds = found.st_mtim.tv_nsec};
}

void DirectoryFolder::note(std::string_view file) const {
  const Stamp now = stamp_of(path_ / file);
  const std::lock_guard lock(mutex_);
  read_.emplace(file, now);
}

bool DirectoryFolder::has(std::string_view file) const {
  return is_there(path_ / file);
}
std::string DirectoryFolder::read(std::string_view file) const {
  note(file);
  return read_regular_file(path_ / file);
}
SafetensorsFile DirectoryFolder::open_tensors(std::string_view file) const {
  note(file);
  return SafetensorsFile::open(path_ / file);
}

std::vector<std::string> DirectoryFolder::small_files() const {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator entry(path_, code), end; !code && entry != end; entry.increment(code)) {
    if (entry->is_regular_file(code) && is_small_file(entry->path()))
      names.push_back(entry->path().filename().string());
    if (!entry->is_directory(code) || !has("modules.json")) continue;
    for (const char* file : {"config.json", "model.safetensors"}) {  // of a module: a pooling, a dense layer
      const std::string name = entry->path().filename().string() + "/" + file;
      if (has(name)) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string DirectoryFolder::changed() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [file, stamp] : read_) {
    if (stamp_of(path_ / file) != stamp) return file;
  }
  return {};
}

std::string MemoryFolder::read(std::string_view file) const {
  const auto found = files_.find(file);
  if (found == files_.end())
    throw FileError(fmt::format("{} has no {}; give it all files of the model", name_, file), ENOENT);
  return found->second;
}
SafetensorsFile MemoryFolder::open_tensors(std::string_view file) const {
  return SafetensorsFile::from_bytes(read(file), path_of(file));
}
std::vector<std::string> MemoryFolder::small_files() const {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files_) {
    if (is_small_file(name)) names.push_back(name);
  }
  return names;
}

}  // namespace mh
