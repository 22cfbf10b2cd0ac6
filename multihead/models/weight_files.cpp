#include "multihead/models/weight_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string listed(const std::vector<std::string>& items, const char* separator) {
  constexpr size_t kMostListed = 100;
  const size_t shown = std::min(items.size(), kMostListed);
  std::string text =
      fmt::format("{}", fmt::join(items.begin(), items.begin() + static_cast<ptrdiff_t>(shown), separator));
  if (shown < items.size()) text += fmt::format("{}and {} more", separator, items.size() - shown);
  return text;
}

/// {"weight_map": {TENSOR: FILE, ...}} of an index.
std::map<std::string, std::string> weight_map(const fs::path& index) {
  const std::string name = index.string();
  const auto document = parse_json_strictly(read_regular_file(index), name);
  const auto* const map =
      document.is_object() && document.contains("weight_map") ? &document.at("weight_map") : nullptr;
  if (map == nullptr || !map->is_object() || map->empty())
    throw FormatError(fmt::format("{}: expected an object \"weight_map\" of tensors and their files", name));
  std::map<std::string, std::string> found;
  for (const auto& [tensor, file] : map->items()) {
    const std::string where = file.is_string() ? file.get<std::string>() : "";
    if (where.empty() || where.find('/') != std::string::npos || where.find('\0') != std::string::npos) {
      throw FormatError(fmt::format("{}: weight_map: {}: expected the name of a file beside it, got {}", name,
                                    json_excerpt(tensor), json_excerpt(file)));
    }
    found[tensor] = where;
  }
  return found;
}

}  // namespace

void Differences::throw_if_any(const std::string& file) const {
  std::vector<std::string> clauses;
  if (!missing_.empty()) clauses.push_back("missing: " + listed(missing_, ", "));
  if (!others_.empty()) clauses.push_back(listed(others_, "; "));
  if (!unused_.empty()) clauses.push_back("not used: " + listed(unused_, ", "));
  if (clauses.empty()) return;
  throw FormatError(fmt::format("{} does not fit config.json: {}; take both files from the same model", file,
                                fmt::join(clauses, "; ")));
}

WeightFiles::WeightFiles(SafetensorsFile file, std::string name) : name_(std::move(name)) {
  add(std::move(file));
}

void WeightFiles::add(SafetensorsFile file) {
  for (const TensorEntry& entry : file.entries()) where_.emplace(entry.name, files_.size());
  files_.push_back(std::move(file));
}

WeightFiles WeightFiles::open(const fs::path& folder) {
  std::error_code code;
  if (fs::exists(folder / kOneFile, code) || !fs::exists(folder / kIndex, code)) {
    const fs::path path = folder / kOneFile;
    return WeightFiles(SafetensorsFile::open(path), path.string());
  }
  WeightFiles found;
  const fs::path index = folder / kIndex;
  found.name_ = index.string();
  const std::map<std::string, std::string> map = weight_map(index);
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map) shards.insert(file);
  std::map<std::string, size_t> numbers;
  for (const std::string& shard : shards) {
    numbers[shard] = found.files_.size();
    found.files_.push_back(SafetensorsFile::open(folder / shard));
  }
  std::vector<std::string> wrong;
  for (const auto& [tensor, shard] : map) {
    const size_t number = numbers.at(shard);
    if (!found.files_[number].contains(tensor))
      wrong.push_back(fmt::format("{} is not in {}", tensor, shard));
    found.where_.emplace(tensor, number);
  }
  for (const auto& [shard, number] : numbers) {
    for (const TensorEntry& entry : found.files_[number].entries()) {
      if (const auto at = map.find(entry.name); at == map.end() || at->second != shard)
        wrong.push_back(fmt::format("{} of {} is not listed", entry.name, shard));
    }
  }
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", found.name_, listed(wrong, "; ")));
  return found;
}

const SafetensorsFile& WeightFiles::file_of(std::string_view tensor) const {
  const auto found = where_.find(tensor);
  if (found == where_.end())
    throw FormatError(fmt::format("{}: no tensor {}", name_, json_excerpt(std::string(tensor))));
  return files_[found->second];
}

std::vector<std::string> WeightFiles::tensors() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : where_) names.push_back(name);
  return names;
}

double WeightFiles::elements() const {
  double sum = 0;
  for (const SafetensorsFile& file : files_) {
    for (const TensorEntry& entry : file.entries()) sum += static_cast<double>(entry.elements());
  }
  return sum;
}

}  // namespace mh
