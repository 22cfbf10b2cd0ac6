#include "multihead/io/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "multihead/base/error.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

using nlohmann::json;
static_assert(std::endian::native == std::endian::little, "the bytes of tensors are copied as they are");

constexpr uint64_t kLongestHeader = 100'000'000;  // the reference's bound
constexpr int kHeaderDepth = 3;                   // {NAME: {"shape": [...]}}
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

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));  // infinity, NaN
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal, exact
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

template <class Stored, class Out, class Convert>
void convert_all(std::string_view bytes, std::span<Out> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    out[i] = convert(stored);
  }
}

// One tensor's part of the header; throws FormatError that starts with `place`.
TensorEntry parse_entry(const std::string& name, const json& value, const std::string& place) {
  const auto fail = [&](const std::string& what) -> FormatError { return FormatError(place + ": " + what); };
  if (!value.is_object()) throw fail("expected an object, found " + json_excerpt(value));
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
  if (!shape.is_array()) throw fail("shape: expected a list, found " + json_excerpt(shape));
  std::optional<uint64_t> bytes = 1;
  for (const json& size : shape) {
    if (!size.is_number_unsigned())
      throw fail("shape: expected sizes of 0 and more, found " + json_excerpt(size));
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
    throw fail("data_offsets: expected two integers of 0 and more, found " + json_excerpt(offsets));
  }
  entry.begin = offsets[0].get<uint64_t>();
  entry.end = offsets[1].get<uint64_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != *bytes) {
    throw fail(fmt::format("data_offsets: expected {} bytes for {} {}, found {}", *bytes,
                           dtype_name(entry.dtype), json_excerpt(shape), json_excerpt(offsets)));
  }
  return entry;
}

}  // namespace

const char* dtype_name(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].name;
}
int64_t dtype_size(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)].size;
}

struct SafetensorsFile::State {
  std::string name;   // for messages
  int fd = -1;        // the file, or
  std::string whole;  // all bytes in memory
  uint64_t size = 0;
  uint64_t data_start = 0;
  std::vector<TensorEntry> entries;
  std::map<std::string, size_t, std::less<>> index;
  std::map<std::string, std::string> metadata;

  ~State() {
    if (fd >= 0) ::close(fd);
  }

  void read(uint64_t at, char* out, size_t count) const {
    if (fd < 0) {
      std::memcpy(out, whole.data() + at, count);
      return;
    }
    while (count > 0) {
      const ssize_t n = ::pread(fd, out, count, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw FileError(fmt::format("cannot read {}: {}", name, std::strerror(errno)));
      if (n == 0) throw FormatError(fmt::format("{}: became shorter while it was read", name));
      at += static_cast<uint64_t>(n);
      out += n;
      count -= static_cast<size_t>(n);
    }
  }

  void read_header() {
    if (size < 8)
      throw FormatError(fmt::format("{}: {} bytes are too few for safetensors; is it complete?", name, size));
    uint64_t length = 0;
    read(0, reinterpret_cast<char*>(&length), sizeof length);
    if (length > kLongestHeader) {
      throw FormatError(fmt::format("{}: not safetensors: its header would have {} bytes (at most {})", name,
                                    length, kLongestHeader));
    }
    if (length > size - 8) {
      throw FormatError(
          fmt::format("{}: cut short: its header has {} bytes, the file {}", name, length, size));
    }
    std::string text(length, '\0');
    read(8, text.data(), text.size());
    if (!text.starts_with('{'))
      throw FormatError(fmt::format("{}: not safetensors: its header begins with no {{", name));
    data_start = 8 + length;
    const json header = parse_json_strictly(text, name + ": header", kHeaderDepth);
    for (const auto& [key, value] : header.items()) {
      if (key == kMetadata) {
        read_metadata(value);
      } else {
        entries.push_back(parse_entry(key, value, fmt::format("{}: tensor {}", name, json_excerpt(key))));
      }
    }
    check_layout();
  }

  void read_metadata(const json& value) {
    if (!value.is_object()) throw FormatError(fmt::format("{}: __metadata__: expected an object", name));
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) {
        throw FormatError(fmt::format("{}: __metadata__: {}: expected a text, found {}", name,
                                      json_excerpt(key), json_excerpt(text)));
      }
      metadata.emplace(key, text.get<std::string>());
    }
  }

  void check_layout() {
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
      index.emplace(entry.name, i);
    }
    if (at != size - data_start) {
      throw FormatError(
          fmt::format("{}: expected {} bytes of tensors after the header, found {}; is it complete?", name,
                      at, size - data_start));
    }
  }
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->read_header();
}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto state = std::make_unique<State>();
  state->name = path.string();
  state->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (state->fd < 0 || ::fstat(state->fd, &info) != 0) {
    throw FileError(fmt::format("cannot read {}: {}", state->name, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) throw FileError(fmt::format("cannot read {}: not a regular file", state->name));
  state->size = static_cast<uint64_t>(info.st_size);
  return SafetensorsFile(std::move(state));
}

SafetensorsFile SafetensorsFile::from_bytes(std::string bytes, std::string name) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->size = bytes.size();
  state->whole = std::move(bytes);
  return SafetensorsFile(std::move(state));
}

const std::vector<TensorEntry>& SafetensorsFile::entries() const {
  return state_->entries;
}
const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return state_->metadata;
}
bool SafetensorsFile::contains(std::string_view name) const {
  return state_->index.find(name) != state_->index.end();
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const TensorEntry& entry : state_->entries) names.push_back(entry.name);
  return names;
}

const TensorEntry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = state_->index.find(name);
  if (found == state_->index.end()) {
    throw FormatError(fmt::format("{}: no tensor {}", state_->name, json_excerpt(std::string(name))));
  }
  return state_->entries[found->second];
}

std::string SafetensorsFile::bytes(std::string_view name) const {
  const TensorEntry& tensor = entry(name);
  std::string bytes(tensor.end - tensor.begin, '\0');
  state_->read(state_->data_start + tensor.begin, bytes.data(), bytes.size());
  return bytes;
}

std::vector<float> SafetensorsFile::floats(std::string_view name) const {
  std::vector<float> values(static_cast<size_t>(entry(name).elements()));
  read_floats(name, values);
  return values;
}

void SafetensorsFile::read_floats(std::string_view name, std::span<float> out) const {
  const TensorEntry& tensor = entry(name);
  MH_ASSERT(out.size() == static_cast<size_t>(tensor.elements()));
  switch (tensor.dtype) {
    case DType::kF32:
      state_->read(state_->data_start + tensor.begin, reinterpret_cast<char*>(out.data()), out.size_bytes());
      return;
    case DType::kF16:
      return convert_all<uint16_t>(bytes(name), out, half_to_float);
    case DType::kBF16:
      return convert_all<uint16_t>(bytes(name), out, [](uint16_t high) {
        return std::bit_cast<float>(static_cast<uint32_t>(high) << 16);
      });
    case DType::kF64:
      return convert_all<double>(bytes(name), out, [](double x) { return static_cast<float>(x); });
    default:
      throw FormatError(fmt::format("{}: tensor {}: expected F32, F16, BF16 or F64, found {}", state_->name,
                                    json_excerpt(tensor.name), dtype_name(tensor.dtype)));
  }
}

std::vector<int64_t> SafetensorsFile::integers(std::string_view name) const {
  const TensorEntry& tensor = entry(name);
  std::vector<int64_t> out(static_cast<size_t>(tensor.elements()));
  const auto widen = [](auto x) { return static_cast<int64_t>(x); };
  const std::string raw = bytes(name);
  const std::span<int64_t> all(out);
  switch (tensor.dtype) {
    case DType::kBool:
    case DType::kU8:
      convert_all<uint8_t>(raw, all, widen);
      break;
    case DType::kI8:
      convert_all<int8_t>(raw, all, widen);
      break;
    case DType::kI16:
      convert_all<int16_t>(raw, all, widen);
      break;
    case DType::kU16:
      convert_all<uint16_t>(raw, all, widen);
      break;
    case DType::kI32:
      convert_all<int32_t>(raw, all, widen);
      break;
    case DType::kU32:
      convert_all<uint32_t>(raw, all, widen);
      break;
    case DType::kI64:
      convert_all<int64_t>(raw, all, widen);
      break;
    case DType::kU64:
      convert_all<uint64_t>(raw, all, [&](uint64_t x) {
        if (x > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
          throw FormatError(
              fmt::format("{}: tensor {}: {} exceeds 63 bits", state_->name, json_excerpt(tensor.name), x));
        }
        return static_cast<int64_t>(x);
      });
      break;
    default:
      throw FormatError(fmt::format("{}: tensor {}: expected integers, found {}", state_->name,
                                    json_excerpt(tensor.name), dtype_name(tensor.dtype)));
  }
  return out;
}

}  // namespace mh
