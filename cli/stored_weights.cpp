#include "cli/stored_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/common.h"
#include "multihead/base/terminal_text.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/folders/tensor_files.h"

namespace mh::cli {

std::vector<StoredAlike> stored_weights(const ModelFolder& folder) {
  const FolderSource& source = *folder.source;
  const bool is_safetensors = source.has(kWeightsFile) || source.has(kWeightsIndexFile);
  const TensorFiles files = is_safetensors ? TensorFiles::open(source) : source.tensors();
  std::vector<StoredAlike> found;
  for (const auto& named : files.tensors()) {
    const FileTensor& tensor = named.second;
    auto alike =
        std::find_if(found.begin(), found.end(), [&](const auto& of) { return of.type == tensor.type; });
    if (alike == found.end()) alike = found.insert(alike, {.type = tensor.type});
    ++alike->tensors;
    alike->bytes += tensor.bytes;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return found;
}

nlohmann::ordered_json stored_weights_json(const std::vector<StoredAlike>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const StoredAlike& alike : all)
    json.push_back({{"type", alike.type}, {"tensors", alike.tensors}, {"bytes", alike.bytes}});
  return json;
}

std::string bytes_text(int64_t bytes) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
  for (const auto& [size, unit] : kUnits) {
    if (static_cast<double>(bytes) >= size)
      return fmt::format("{:.1f} {}", static_cast<double>(bytes) / size, unit);
  }
  return counted(bytes, "byte");
}

}  // namespace mh::cli
