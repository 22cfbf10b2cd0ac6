#include "multihead/io/gguf.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/platform.h"
#include "multihead/io/gguf_header.h"
#include "multihead/io/strict_json.h"

namespace mh {

int64_t GgufTensor::elements() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

struct GgufFile::State {
  std::string name;   // for messages
  int fd = -1;        // the file, or
  std::string whole;  // all bytes in memory
  void* map = nullptr;
  std::span<const std::byte> bytes;
  std::vector<std::shared_ptr<const State>> parts;  // of a file that was cut, or
  GgufHeader header;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (map != nullptr) ::munmap(map, bytes.size());
    if (fd >= 0) ::close(fd);
  }

  static std::string described(const GgufValue& value) {
    return value.is_list ? fmt::format("a list of {}", gguf_value_name(value.value.type))
                         : value.value.describe();
  }
  [[noreturn]] void expected(std::string_view key, const std::string& what, const GgufValue& value) const {
    throw FormatError(fmt::format("{}: {}: expected {}, got {}", name, json_excerpt(std::string(key)), what,
                                  described(value)));
  }

  /// The items of a list of numbers, of which read(item) gives one, or nothing when it has another type.
  template <class T, class Read>
  std::optional<std::vector<T>> list(std::string_view key, const char* what, Read read) const {
    const GgufValue* value = header.find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_list || gguf_value_size(value->value.type) == 0) expected(key, what, *value);
    std::vector<T> found;
    found.reserve(value->items);  // each has a byte of the file at least
    GgufItem item = value->value;
    for (uint64_t i = 0; i < value->items; ++i, item.at += gguf_value_size(item.type)) {
      const std::optional<T> number = read(item);
      if (!number) expected(key, what, *value);
      found.push_back(*number);
    }
    return found;
  }
};

GgufFile::GgufFile(std::shared_ptr<State> state) {
  if (state->parts.empty()) state->header = parse_gguf_header(state->bytes, state->name);
  state_ = std::move(state);
}

GgufFile GgufFile::joined(const std::vector<GgufFile>& parts) {
  auto state = std::make_shared<State>();
  state->name = parts.at(0).name();
  state->header.values = parts.at(0).state_->header.values;
  std::set<std::string_view> names;
  for (const GgufFile& part : parts) {
    state->parts.push_back(part.state_);
    for (const GgufTensor& tensor : part.tensors()) {
      if (!names.insert(tensor.name).second)
        throw FormatError(fmt::format("{}: tensor {} is in another part, too", part.name(),
                                      json_excerpt(std::string(tensor.name))));
      state->header.tensors.push_back(tensor);
    }
  }
  return GgufFile(std::move(state));
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  auto state = std::make_shared<State>();
  state->name = path.string();
  state->fd = open_regular_file(path);
  struct stat info {};
  if (::fstat(state->fd, &info) != 0) throw_cannot_read(state->name, errno);
  const auto size = static_cast<size_t>(info.st_size);
  if (size > 0) {  // nothing cannot be mapped
    void* const map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, state->fd, 0);
    if (map == MAP_FAILED) throw_cannot_read(state->name, errno);
    state->map = map;
    state->bytes = {static_cast<const std::byte*>(map), size};
  }
  return GgufFile(std::move(state));
}

GgufFile GgufFile::from_bytes(std::string bytes, std::string name) {
  auto state = std::make_shared<State>();
  state->name = std::move(name);
  state->whole = std::move(bytes);
  state->bytes = std::as_bytes(std::span(state->whole));
  return GgufFile(std::move(state));
}

const std::string& GgufFile::name() const {
  return state_->name;
}
bool GgufFile::contains(std::string_view key) const {
  return state_->header.find(key) != nullptr;
}
int64_t GgufFile::items(std::string_view key) const {
  const GgufValue* value = state_->header.find(key);
  if (value == nullptr) return 0;
  if (!value->is_list) state_->expected(key, "a list", *value);
  return static_cast<int64_t>(value->items);
}
const std::vector<GgufTensor>& GgufFile::tensors() const {
  return state_->header.tensors;
}
const GgufTensor* GgufFile::tensor(std::string_view name) const {
  for (const GgufTensor& tensor : tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}
bool GgufFile::is_mapped() const {
  return state_->map != nullptr || std::any_of(state_->parts.begin(), state_->parts.end(),
                                               [](const auto& part) { return part->map != nullptr; });
}

std::vector<std::string_view> GgufFile::keys() const {
  std::vector<std::string_view> found;
  for (const GgufValue& value : state_->header.values) found.push_back(value.key);
  std::sort(found.begin(), found.end());
  return found;
}
std::string GgufFile::described(std::string_view key) const {
  const GgufValue* value = state_->header.find(key);
  if (value == nullptr) return "nothing";
  if (!value->is_list && value->value.type == GgufValueType::kBool)
    return flag(key).value() ? "true" : "false";
  return State::described(*value);
}

std::string_view GgufFile::stored(std::string_view key) const {
  const GgufValue* value = state_->header.find(key);
  MH_ASSERT(value != nullptr);
  return {reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size()};
}

std::shared_ptr<const void> GgufFile::keeper() const {
  return state_;
}

std::optional<int64_t> GgufFile::integer(std::string_view key, int64_t low, int64_t high) const {
  const GgufValue* value = state_->header.find(key);
  if (value == nullptr) return std::nullopt;
  const auto found = value->is_list ? std::nullopt : value->value.integer();
  if (!found || *found < low || *found > high)
    state_->expected(key, fmt::format("an integer from {} to {}", low, high), *value);
  return found;
}

std::optional<double> GgufFile::number(std::string_view key, double low, double high) const {
  const GgufValue* value = state_->header.find(key);
  if (value == nullptr) return std::nullopt;
  const auto found = value->is_list ? std::nullopt : value->value.number();
  if (!found || !(*found >= low && *found <= high))
    state_->expected(key, fmt::format("a number from {} to {}", low, high), *value);
  return found;
}

std::optional<bool> GgufFile::flag(std::string_view key) const {
  const GgufValue* value = state_->header.find(key);
  if (value == nullptr) return std::nullopt;
  const bool is_flag = !value->is_list && value->value.type == GgufValueType::kBool;
  const int byte = is_flag ? std::to_integer<int>(*value->value.at) : -1;
  if (byte != 0 && byte != 1) state_->expected(key, "true or false", *value);
  return byte == 1;
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
  const GgufValue* value = state_->header.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_list || value->value.type != GgufValueType::kText) state_->expected(key, "a text", *value);
  return value->value.text();
}

std::optional<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  return state_->list<int64_t>(key, "a list of integers",
                               [](const GgufItem& item) { return item.integer(); });
}

std::optional<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  return state_->list<double>(key, "a list of numbers", [](const GgufItem& item) { return item.number(); });
}

std::optional<std::vector<std::string_view>> GgufFile::texts(std::string_view key) const {
  const GgufValue* value = state_->header.find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_list || value->value.type != GgufValueType::kText)
    state_->expected(key, "a list of texts", *value);
  std::vector<std::string_view> found;
  found.reserve(value->items);  // each has 8 bytes of the file at least
  GgufItem item = value->value;
  for (uint64_t i = 0; i < value->items; ++i) {
    found.push_back(item.text());
    item.at += sizeof(uint64_t) + found.back().size();
  }
  return found;
}

std::vector<float> GgufFile::floats(const GgufTensor& tensor) const {
  std::vector<float> numbers(static_cast<size_t>(tensor.elements()));
  read_gguf_blocks(tensor.type, tensor.bytes, numbers);
  return numbers;
}

int64_t GgufFile::not_finite(const GgufTensor& tensor) const {
  const int64_t bad = not_finite_in_gguf_blocks(tensor.type, tensor.bytes);
  if (is_mapped())
    release_mapped(tensor.bytes.data(), tensor.bytes.size());  // a check of all is no reason to keep all
  return bad;
}

}  // namespace mh
