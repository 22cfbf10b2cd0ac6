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

void Differences::throw_if_any(const std::string& file, const std::string& description,
                               const std::string& remedy) const {
  std::vector<std::string> clauses;
  if (!missing_.empty()) clauses.push_back("missing: " + listed(missing_, ", "));
  if (!others_.empty()) clauses.push_back(listed(others_, "; "));
  if (!unused_.empty()) clauses.push_back("not used: " + listed(unused_, ", "));
  if (clauses.empty()) return;
  throw FormatError(
      fmt::format("{} does not fit {}: {}; {}", file, description, fmt::join(clauses, "; "), remedy));
}

StoredNumbers StoredNumbers::of(std::vector<float> numbers) {
  auto kept = std::make_shared<std::vector<float>>(std::move(numbers));
  const auto* data = reinterpret_cast<const std::byte*>(kept->data());
  return {.data = data, .type = NumberType::kFloat32, .keeper = std::move(kept)};
}

int64_t WeightTensor::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

WeightFiles::WeightFiles(SafetensorsFile file, std::string name) : name_(std::move(name)) {
  add(std::make_shared<const SafetensorsFile>(std::move(file)));
}

void WeightFiles::add(const std::shared_ptr<const SafetensorsFile>& file) {
  for (const TensorEntry& entry : file->entries()) {
    WeightTensor tensor{.shape = entry.shape, .type = dtype_name(entry.dtype), .numbers = nullptr};
    const std::string& name = entry.name;  // lives in the file
    if (entry.dtype == DType::kF32 || entry.dtype == DType::kBF16) {
      const NumberType type = entry.dtype == DType::kF32 ? NumberType::kFloat32 : NumberType::kBFloat16;
      tensor.numbers = [file, type, &name] {
        SafetensorsFile::Mapped mapped = file->mapped(name);
        return StoredNumbers{.data = mapped.data, .type = type, .keeper = std::move(mapped.keeper)};
      };
    } else if (entry.dtype == DType::kF16 || entry.dtype == DType::kF64) {
      tensor.numbers = [file, &name] { return StoredNumbers::of(file->floats(name)); };
    }
    tensors_.emplace(name, std::move(tensor));
  }
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
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files;
  for (const std::string& shard : shards)
    files[shard] = std::make_shared<const SafetensorsFile>(SafetensorsFile::open(folder / shard));
  std::vector<std::string> wrong;
  for (const auto& [tensor, shard] : map) {
    if (!files.at(shard)->contains(tensor)) wrong.push_back(fmt::format("{} is not in {}", tensor, shard));
  }
  for (const auto& [shard, file] : files) {
    for (const TensorEntry& entry : file->entries()) {
      if (const auto at = map.find(entry.name); at == map.end() || at->second != shard)
        wrong.push_back(fmt::format("{} of {} is not listed", entry.name, shard));
    }
    found.add(file);
  }
  if (!wrong.empty()) throw FormatError(fmt::format("{}: {}", found.name_, listed(wrong, "; ")));
  return found;
}

const WeightTensor& WeightFiles::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw FormatError(fmt::format("{}: no tensor {}", name_, json_excerpt(std::string(name))));
  return found->second;
}

std::vector<float> WeightFiles::floats(std::string_view name) const {
  const WeightTensor& found = tensor(name);
  if (!found.numbers)
    throw FormatError(fmt::format("{}: tensor {}: expected floating-point numbers, got {}", name_,
                                  json_excerpt(std::string(name)), found.type));
  std::vector<float> numbers(static_cast<size_t>(found.elements()));
  if (numbers.empty()) return numbers;  // there is no memory to copy to
  const StoredNumbers stored = found.numbers();
  StoredMatrix{.data = stored.data, .type = stored.type, .rows = 1, .cols = found.elements()}.read_row(
      0, 0, found.elements(), numbers.data());
  return numbers;
}

double WeightFiles::elements() const {
  double sum = 0;
  for (const auto& [name, tensor] : tensors_) sum += static_cast<double>(tensor.elements());
  return sum;
}

}  // namespace mh
