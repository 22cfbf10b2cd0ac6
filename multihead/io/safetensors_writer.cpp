#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <type_traits>

#include "multihead/base/error.h"
#include "multihead/io/safetensors.h"
#include "multihead/io/strict_json.h"

namespace mh {
static_assert(std::endian::native == std::endian::little, "the bytes of tensors are copied as they are");

namespace {

DType dtype_of(const NamedTensor& tensor) {
  constexpr std::array kByIndex{DType::kF32, DType::kF32, DType::kI64, DType::kI32};
  return kByIndex[tensor.data.index()];
}

int64_t elements_of(const NamedTensor& tensor) {
  return std::visit([](const auto& data) { return static_cast<int64_t>(data.size()); }, tensor.data);
}

void check_tensor(const NamedTensor& tensor) {
  if (tensor.name == "__metadata__")
    throw UsageError("no tensor may be called __metadata__: safetensors keeps other things there");
  const auto numbers = static_cast<double>(elements_of(tensor));
  double product = 1;  // in double: sizes may claim more than any integer holds
  bool negative = false;
  for (const int64_t size : tensor.shape) {
    negative = negative || size < 0;
    product *= static_cast<double>(size);
  }
  if (!negative && product == numbers) return;
  throw ShapeError(fmt::format("tensor {} of shape [{}] has {} numbers", json_excerpt(tensor.name),
                               fmt::join(tensor.shape, ","), elements_of(tensor)));
}

template <class T>
void append_bytes(std::string& bytes, std::span<const T> values) {
  if (!values.empty()) bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void append_data(std::string& bytes, const NamedTensor& tensor) {
  std::visit(
      [&](const auto& data) {
        if constexpr (std::is_same_v<std::decay_t<decltype(data)>, ConstMatrixView>) {
          for (int64_t i = 0; i < data.rows; ++i) {
            append_bytes(bytes, std::span<const float>(data.row(i), static_cast<size_t>(data.cols)));
          }
        } else {
          append_bytes(bytes, data);
        }
      },
      tensor.data);
}

}  // namespace

std::string safetensors_header(std::span<const TensorEntry> entries,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json::object_t members;  // members are appended: no search for an equal key
  if (!metadata.empty()) members.emplace_back("__metadata__", metadata);
  for (const TensorEntry& tensor : entries) {
    nlohmann::ordered_json entry;
    entry["dtype"] = dtype_name(tensor.dtype);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {tensor.begin, tensor.end};
    members.emplace_back(tensor.name, std::move(entry));
  }
  std::string header = nlohmann::ordered_json(std::move(members)).dump();
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes += header;
}

std::string write_safetensors(std::span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    if (dtype_of(*a) != dtype_of(*b)) return dtype_of(*a) > dtype_of(*b);
    return a->name < b->name;
  });

  std::vector<TensorEntry> entries;
  uint64_t at = 0;
  std::set<std::string_view> names;
  for (const NamedTensor* const each : order) {
    const NamedTensor& tensor = *each;
    check_tensor(tensor);
    if (!names.insert(tensor.name).second)
      throw UsageError(fmt::format("tensor {} is there twice; names must differ", json_excerpt(tensor.name)));
    const DType dtype = dtype_of(tensor);
    const uint64_t end = at + static_cast<uint64_t>(elements_of(tensor) * dtype_size(dtype));
    entries.push_back({.name = tensor.name, .dtype = dtype, .shape = tensor.shape, .begin = at, .end = end});
    at = end;
  }
  std::string bytes = safetensors_header(entries, metadata);
  bytes.reserve(bytes.size() + static_cast<size_t>(at));
  for (const NamedTensor* tensor : order) append_data(bytes, *tensor);
  return bytes;
}

}  // namespace mh
