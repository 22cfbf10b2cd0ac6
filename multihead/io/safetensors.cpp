#include "multihead/io/safetensors.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/io/safetensors_header.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of tensors are copied as they are");

constexpr uint64_t kLongestHeader = 100'000'000;  // the reference's bound

template <class Stored, class Out, class Convert>
void convert_all(std::string_view bytes, std::span<Out> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    out[i] = convert(stored);
  }
}

}  // namespace

struct SafetensorsFile::State {
  std::string name;   // for messages
  int fd = -1;        // the file, or
  std::string whole;  // all bytes in memory
  uint64_t size = 0;
  uint64_t data_start = 0;
  SafetensorsHeader header;
  std::mutex mapping;
  void* map = nullptr;  // all of the file, once somebody asked for it

  ~State() {
    if (map != nullptr) ::munmap(map, size);
    if (fd >= 0) ::close(fd);
  }

  const std::byte* begin() {
    if (fd < 0) return reinterpret_cast<const std::byte*>(whole.data());
    const std::lock_guard lock(mapping);
    if (map == nullptr) {
      void* made = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
      if (made == MAP_FAILED) throw_cannot_read(name, errno);
      map = made;
    }
    return static_cast<const std::byte*>(map);
  }

  void read(uint64_t at, char* out, size_t count) const {
    if (count == 0) return;  // `out` may be null
    if (fd < 0) {
      std::memcpy(out, whole.data() + at, count);
      return;
    }
    while (count > 0) {
      const ssize_t n = ::pread(fd, out, count, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw_cannot_read(name, errno);
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
    header = parse_safetensors_header(text, size - data_start, name);
  }
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<State> state) : state_(std::move(state)) {
  state_->read_header();
}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto state = std::make_shared<State>();
  state->name = path.string();
  state->fd = open_regular_file(path);
  struct stat info {};
  if (::fstat(state->fd, &info) != 0) throw_cannot_read(state->name, errno);
  state->size = static_cast<uint64_t>(info.st_size);
  return SafetensorsFile(std::move(state));
}

SafetensorsFile SafetensorsFile::from_bytes(std::string bytes, std::string name) {
  auto state = std::make_shared<State>();
  state->name = std::move(name);
  state->size = bytes.size();
  state->whole = std::move(bytes);
  return SafetensorsFile(std::move(state));
}

const std::vector<TensorEntry>& SafetensorsFile::entries() const {
  return state_->header.entries;
}
const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return state_->header.metadata;
}
bool SafetensorsFile::contains(std::string_view name) const {
  return state_->header.index.find(name) != state_->header.index.end();
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const TensorEntry& entry : state_->header.entries) names.push_back(entry.name);
  return names;
}

const TensorEntry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = state_->header.index.find(name);
  if (found == state_->header.index.end()) {
    throw FormatError(fmt::format("{}: no tensor {}", state_->name, json_excerpt(std::string(name))));
  }
  return state_->header.entries[found->second];
}

std::string SafetensorsFile::bytes(std::string_view name) const {
  const TensorEntry& tensor = entry(name);
  std::string bytes(tensor.end - tensor.begin, '\0');
  state_->read(state_->data_start + tensor.begin, bytes.data(), bytes.size());
  return bytes;
}

SafetensorsFile::Mapped SafetensorsFile::mapped(std::string_view name) const {
  const TensorEntry& tensor = entry(name);
  return {.data = state_->begin() + state_->data_start + tensor.begin,
          .keeper = state_,
          .in_file = state_->fd >= 0};
}

std::vector<float> SafetensorsFile::floats(std::string_view name) const {
  std::vector<float> values(static_cast<size_t>(entry(name).elements()));
  read_floats(name, values);
  return values;
}

void SafetensorsFile::read_floats(std::string_view name, std::span<float> out) const {
  const TensorEntry& tensor = entry(name);
  if (out.size() != static_cast<size_t>(tensor.elements())) {
    throw ShapeError(fmt::format("{}: tensor {} has {} numbers, not {}", state_->name,
                                 json_excerpt(tensor.name), tensor.elements(), out.size()));
  }
  switch (tensor.dtype) {
    case DType::kF32:
      state_->read(state_->data_start + tensor.begin, reinterpret_cast<char*>(out.data()), out.size_bytes());
      return;
    case DType::kF16:
      return convert_all<uint16_t>(bytes(name), out, from_float16);
    case DType::kBF16:
      return convert_all<uint16_t>(bytes(name), out, from_bfloat16);
    case DType::kF64:
      return convert_all<double>(bytes(name), out, [](double x) { return static_cast<float>(x); });
    default:
      throw FormatError(fmt::format("{}: tensor {}: expected F32, F16, BF16 or F64, got {}", state_->name,
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
      throw FormatError(fmt::format("{}: tensor {}: expected integers, got {}", state_->name,
                                    json_excerpt(tensor.name), dtype_name(tensor.dtype)));
  }
  return out;
}

}  // namespace mh
