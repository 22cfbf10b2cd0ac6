#include "multihead/folders/tensor_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/not_finite.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/folder_source.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

std::string listed(const std::vector<std::string>& items, const char* separator) {
  constexpr size_t kMostListed = 100;
  const size_t shown = std::min(items.size(), kMostListed);
  std::string text =
      fmt::format("{}", fmt::join(items.begin(), items.begin() + static_cast<ptrdiff_t>(shown), separator));
  if (shown < items.size()) text += fmt::format("{}and {} more", separator, items.size() - shown);
  return text;
}

/// {"weight_map": {TENSOR: FILE, ...}} of an index.
std::map<std::string, std::string> weight_map(const FolderSource& folder) {
  const std::string name = folder.path_of(kWeightsIndexFile);
  const auto document = parse_json_strictly(folder.read(kWeightsIndexFile), name);
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

bool has_shards(const FolderSource& folder) {
  return !folder.has(kWeightsFile) && folder.has(kWeightsIndexFile);
}

/// Numbers that float32 cannot hold are infinite there.
int64_t too_large_for_float32(const std::byte* at, int64_t count) {
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    double number = 0;
    std::memcpy(&number, at + i * static_cast<int64_t>(sizeof number), sizeof number);
    bad += std::isfinite(static_cast<float>(number)) ? 0 : 1;
  }
  return bad;
}

template <class Bits>
std::function<int64_t()> counted(const std::shared_ptr<const SafetensorsFile>& file, const TensorEntry& entry,
                                 Bits exponent) {
  return [file, &entry, exponent] {
    return count_not_finite(file->mapped(entry.name).data, entry.elements(), exponent);
  };
}

/// FileTensor::not_finite of a tensor. REQUIRES: `entry` lives in the file.
std::function<int64_t()> not_finite_in(const std::shared_ptr<const SafetensorsFile>& file,
                                       const TensorEntry& entry) {
  switch (entry.dtype) {
    case DType::kF64:
      return
          [file, &entry] { return too_large_for_float32(file->mapped(entry.name).data, entry.elements()); };
    case DType::kF32:
      return counted(file, entry, kFloat32Exponent);
    case DType::kBF16:
      return counted(file, entry, kBFloat16Exponent);
    case DType::kF16:
      return counted(file, entry, kFloat16Exponent);
    default:
      return nullptr;
  }
}

/// Of tensors whose numbers are read where they lie.
std::optional<NumberType> kept_type(DType type) {
  switch (type) {
    case DType::kF32:
      return NumberType::kFloat32;
    case DType::kBF16:
      return NumberType::kBFloat16;
    case DType::kF16:
      return NumberType::kFloat16;
    default:
      return std::nullopt;
  }
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

void FileTensor::convert(std::shared_ptr<const NumberSource> from) {
  numbers = [from, rows = shape.at(0), count = elements()] {
    std::vector<float> converted(static_cast<size_t>(count));
    from->read_rows(0, rows, converted.data());
    return StoredNumbers::of(std::move(converted));
  };
  source = std::move(from);
}

int64_t FileTensor::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

TensorFiles::TensorFiles(SafetensorsFile file, std::string name) : name_(std::move(name)) {
  add(std::make_shared<const SafetensorsFile>(std::move(file)));
}

void TensorFiles::add(const std::shared_ptr<const SafetensorsFile>& file) {
  for (const TensorEntry& entry : file->entries()) {
    FileTensor tensor{.shape = entry.shape,
                      .type = dtype_name(entry.dtype),
                      .bytes = static_cast<int64_t>(entry.end - entry.begin),
                      .numbers = nullptr,
                      .not_finite = nullptr};
    const std::string& name = entry.name;  // lives in the file
    tensor.not_finite = not_finite_in(file, entry);
    if (const std::optional<NumberType> type = kept_type(entry.dtype)) {
      tensor.numbers = [file, type, &name] {
        SafetensorsFile::Mapped mapped = file->mapped(name);
        return StoredNumbers{.data = mapped.data,
                             .type = *type,
                             .keeper = std::move(mapped.keeper),
                             .in_file = mapped.in_file};
      };
    } else if (entry.dtype == DType::kI8) {
      tensor.integers = [file, &name] { return file->mapped(name); };
    } else if (entry.dtype == DType::kF64) {
      tensor.numbers = [file, &name] { return StoredNumbers::of(file->floats(name)); };
    }
    tensors_.emplace(name, std::move(tensor));
  }
}

std::set<std::string> tensor_file_names(const FolderSource& folder) {
  if (!has_shards(folder)) return {kWeightsFile};
  std::set<std::string> names = {kWeightsIndexFile};
  for (const auto& [tensor, file] : weight_map(folder)) names.insert(file);
  return names;
}

TensorFiles TensorFiles::open(const FolderSource& folder) {
  if (!has_shards(folder))
    return TensorFiles(folder.open_tensors(kWeightsFile), folder.path_of(kWeightsFile));
  TensorFiles found;
  found.name_ = folder.path_of(kWeightsIndexFile);
  const std::map<std::string, std::string> map = weight_map(folder);
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map) shards.insert(file);
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> files;
  for (const std::string& shard : shards)
    files[shard] = std::make_shared<const SafetensorsFile>(folder.open_tensors(shard));
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

TensorFiles::Tensors::const_iterator TensorFiles::find(std::string_view tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() && in_file_ ? tensors_.find(in_file_(tensor)) : found;
}

const FileTensor& TensorFiles::tensor(std::string_view name) const {
  const auto found = find(name);
  if (found == tensors_.end())
    throw FormatError(fmt::format("{}: no tensor {}", name_, json_excerpt(std::string(name))));
  return found->second;
}

std::vector<float> TensorFiles::floats(std::string_view name) const {
  const FileTensor& found = tensor(name);
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

bool TensorFiles::same(std::string_view a, std::string_view b) const {
  const FileTensor &first = tensor(a), &second = tensor(b);
  if (first.shape != second.shape || first.type != second.type || !first.numbers || !second.numbers)
    return false;
  const StoredNumbers one = first.numbers(), other = second.numbers();
  const size_t bytes = static_cast<size_t>(first.elements() * number_size(one.type));
  return bytes == 0 || std::memcmp(one.data, other.data, bytes) == 0;
}

double TensorFiles::elements() const {
  double sum = 0;
  for (const auto& [name, tensor] : tensors_) sum += static_cast<double>(tensor.elements());
  return sum;
}

}  // namespace mh
