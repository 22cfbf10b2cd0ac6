#include "multihead/folders/weights_hash.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/base/sha256.h"
#include "multihead/base/stop.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/gguf_folder.h"
#include "multihead/folders/gguf_split.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

/// Piece by piece: a file may be larger than the memory.
void add_file(const fs::path& file, Sha256& hash) {
  struct Opened {
    int descriptor;
    ~Opened() { ::close(descriptor); }
  };
  const Opened opened{open_regular_file(file)};
  std::vector<char> piece(size_t{1} << 20);
  ssize_t size = 0;
  while ((size = ::read(opened.descriptor, piece.data(), piece.size())) > 0) {
    throw_if_stopped();
    hash.add(piece.data(), static_cast<size_t>(size));
  }
  if (size < 0) throw_cannot_read(file.string(), errno);
}

std::vector<fs::path> shards_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::string weights_hash(const ModelFolder& folder) {
  if (folder.source == nullptr) return {};
  Sha256 hash;
  if (is_gguf(folder.path)) {
    for (const fs::path& file : gguf_files(folder.path)) add_file(file, hash);
  } else if (const fs::path file = folder.source->path_of(kWeightsFile); is_there(file)) {
    add_file(file, hash);
  } else if (folder.source->has(kWeightsFile)) {
    hash.add(folder.source->read(kWeightsFile));
  } else {
    for (const fs::path& shard : shards_of(folder.path)) add_file(shard, hash);
  }
  return hash.digest();
}

}  // namespace mh
