#include "multihead/io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>

#include "multihead/base/error.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using nlohmann::json;

constexpr int kHeaderDepth = 3;  // {NAME: {"shape": [...]}}
constexpr std::string_view kMetadata = "__metadata__";

struct DTypeFacts {
  const char* name;
  int64_t size;
};
// In the order of the enum, which is the reference's order of alignment.
constexpr std::array<DTypeFacts, 15> kDTypes{{{"BOOL", 1},
                                              {"U8", 1},
                                              {"I8", 1},
                                              {"F8_E5M2", 1},
                                              {"F8_E4M3", 1},
                                              {"I16", 2},
                                              {"U16", 2},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"I32", 4},
                                              {"U32", 4},
                                              {"F32", 4},
                                              {"F64", 8},
                                              {"I64", 8},
                                              {"U64", 8}}};

std::optional<DType> dtype_named(std::string_view name) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (name == kDTypes[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

// a * b, or nothing when it exceeds 63 bits (int64_t is what shapes are made of).
std::optional<uint64_t> times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) ||
      product > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return product;
}

// One tensor's part of the header; throws FormatError that starts with `place`.
TensorEntry parse_entry(const std::string& name, const json& value, const std::string& place) {
  const auto fail = [&](const std::string& what) -> FormatError { return FormatError(place + ": " + what); };
  if (!value.is_object()) throw fail("expected an object, got " + json_excerpt(value));
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      throw fail("unknown key " + json_excerpt(key));
  }
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) throw fail(fmt::format("{} is missing", key));
  }
  TensorEntry entry;
  entry.name = name;
  const auto dtype =
      value["dtype"].is_string() ? dtype_named(value["dtype"].get<std::string>()) : std::nullopt;
  if (!dtype) throw fail("unknown dtype " + json_excerpt(value["dtype"]));
  entry.dtype = *dtype;

  const json& shape = value["shape"];
  if (!shape.is_array()) throw fail("shape: expected a list, got " + json_excerpt(shape));
  std::optional<uint64_t> bytes = 1;
  for (const json& size : shape) {
    if (!size.is_number_unsigned())
      throw fail("shape: expected sizes of 0 and more, got " + json_excerpt(size));
    if (bytes) bytes = times(*bytes, size.get<uint64_t>());
    // A single size beyond 63 bits cannot be kept either, also beside a 0.
    if (size.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      bytes = std::nullopt;
    entry.shape.push_back(static_cast<int64_t>(size.get<uint64_t>()));
  }
  if (bytes) bytes = times(*bytes, static_cast<uint64_t>(dtype_size(entry.dtype)));
  if (!bytes) throw fail("shape " + json_excerpt(shape) + " is larger than any memory");

  const json& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    throw fail("data_offsets: expected two integers of 0 and more, got " + json_excerpt(offsets));
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != *bytes) {
    throw fail(fmt::format("data_offsets: expected {} bytes for {} {}, got {}", *bytes,
                           dtype_name(entry.dtype), json_excerpt(shape), json_excerpt(offsets)));
  }
  return entry;
}

std::map<std::string, std::string> read_metadata(const json& value, const std::string& name) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) throw FormatError(fmt::format("{}: __metadata__: expected an object", name));
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      throw FormatError(fmt::format("{}: __metadata__: {}: expected a text, got {}", name, json_excerpt(key),
                                    json_excerpt(text)));
    }
    metadata.emplace(key, text.get<std::string>());
  }
  return metadata;
}

// Sorts the entries by their bytes and numbers them.
void check_layout(SafetensorsHeader& header, uint64_t data_bytes, const std::string& name) {
  std::vector<TensorEntry>& entries = header.entries;
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const TensorEntry& entry = entries[i];
    if (entry.begin != at) {
      throw FormatError(
          fmt::format("{}: tensor {}: its bytes begin at {}, expected {} (a hole or an overlap)", name,
                      json_excerpt(entry.name), entry.begin, at));
    }
    at = entry.end;
    header.index.emplace(entry.name, i);
  }
  if (at != data_bytes) {
    throw FormatError(fmt::format(
        "{}: expected {} bytes of tensors after the header, got {}; is it complete?", name, at, data_bytes));
  }
}

}  // namespace

const char* dtype_name(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].name;
}
int64_t dtype_size(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].size;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& name) {
  SafetensorsHeader header;
  const json document = parse_json_strictly(text, name + ": header", {.deepest = kHeaderDepth});
  for (const auto& [key, value] : document.items()) {
    if (key == kMetadata) {
      header.metadata = read_metadata(value, name);
    } else {
      header.entries.push_back(
          parse_entry(key, value, fmt::format("{}: tensor {}", name, json_excerpt(key))));
    }
  }
  check_layout(header, data_bytes, name);
  return header;
}

}  // namespace mh
