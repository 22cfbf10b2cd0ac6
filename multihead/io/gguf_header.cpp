#include "multihead/io/gguf_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

// Real files have some 40 values and 1,000 tensors. These bounds keep the lists below a few MiB.
constexpr uint64_t kMostValues = 1 << 16, kMostTensors = 1 << 16;
constexpr uint32_t kMostDimensions = 4;  // GGML_MAX_DIMS
constexpr size_t kLongestName = 64;      // GGML_MAX_NAME
constexpr int kDeepestList = 4;
constexpr int64_t kLargestAlignment = 1 << 20;

/// Goes through the file from its beginning; nothing is read beyond its end.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(fmt::format("{}: {}", name_, what));
  }
  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  /// Steps over `count` bytes and returns the first.
  const std::byte* skip(uint64_t count, const std::string& what) {
    if (count > left())
      fail(fmt::format("cut short: {} at byte {} needs {} bytes, {} are left", what, at_, count, left()));
    const std::byte* const first = bytes_.data() + at_;
    at_ += count;
    return first;
  }
  template <class T>
  T number(const std::string& what) {
    T found{};
    std::memcpy(&found, skip(sizeof(T), what), sizeof found);
    return found;
  }
  std::string_view text(const std::string& what) {
    const auto length = number<uint64_t>(what);
    const auto* const first = reinterpret_cast<const char*>(skip(length, what));
    const std::string_view found(first, length);
    if (first_invalid_utf8(found) != std::string_view::npos) fail(fmt::format("{} is not UTF-8", what));
    return found;
  }
  GgufValueType type(const std::string& what) {
    const auto number = this->number<uint32_t>(what);
    if (number >= kGgufValueTypes)
      fail(fmt::format("{}: type {}; expected 0 ... {}", what, number, kGgufValueTypes - 1));
    return static_cast<GgufValueType>(number);
  }
  /// Steps over a value that is no list, or over `count` of them.
  void values(GgufValueType type, uint64_t count, const std::string& what, int depth) {
    const uint64_t size = gguf_value_size(type);
    if (size > 0 && count > left() / size)
      fail(fmt::format("cut short: {} has {} items of {} bytes, {} bytes are left", what, count, size,
                       left()));
    if (size > 0) return static_cast<void>(skip(size * count, what));
    constexpr uint64_t kLeastText = 8, kLeastList = 12;  // bytes
    const uint64_t least = type == GgufValueType::kText ? kLeastText : kLeastList;
    if (count > left() / least)
      fail(fmt::format("cut short: {} has {} items, {} bytes are left", what, count, left()));
    if (type == GgufValueType::kList && depth == kDeepestList)
      fail(fmt::format("{}: lists in lists, more than {} deep", what, kDeepestList));
    for (uint64_t i = 0; i < count; ++i) {
      if (type == GgufValueType::kText) {
        text(what);
      } else {
        const GgufValueType item = this->type(what);
        values(item, number<uint64_t>(what), what, depth + 1);
      }
    }
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  uint64_t at_ = 0;
};

std::string quoted(std::string_view text) {
  return json_excerpt(std::string(text));
}

GgufValue read_value(GgufReader& reader) {
  GgufValue value;
  value.key = reader.text("the key of a metadata value");
  const std::string what = quoted(value.key);
  const std::byte* const begin = reader.skip(0, what);
  value.value.type = reader.type(what);
  value.is_list = value.value.type == GgufValueType::kList;
  if (value.is_list) {
    value.value.type = reader.type(what);
    value.items = reader.number<uint64_t>(what);
  }
  value.value.at = reader.skip(0, what);
  reader.values(value.value.type, value.items, what, value.is_list ? 1 : 0);
  value.bytes = {begin, reader.skip(0, what)};
  return value;
}

/// A tensor and where its bytes begin in the data.
struct PlacedTensor {
  GgufTensor tensor;
  uint64_t offset = 0, bytes = 0;
};

PlacedTensor read_tensor(GgufReader& reader) {
  PlacedTensor place;
  GgufTensor& tensor = place.tensor;
  tensor.name = reader.text("the name of a tensor");
  const std::string what = "tensor " + quoted(tensor.name);
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (tensor.name.empty() || tensor.name.size() > kLongestName ||
      std::any_of(tensor.name.begin(), tensor.name.end(), is_control))
    reader.fail(
        fmt::format("{}: expected a name of 1 ... {} bytes without control characters", what, kLongestName));
  const auto fail = [&](const std::string& problem) { reader.fail(what + ": " + problem); };
  const auto dimensions = reader.number<uint32_t>(what);
  if (dimensions < 1 || dimensions > kMostDimensions)
    fail(fmt::format("{} dimensions; expected 1 ... {}", dimensions, kMostDimensions));
  int64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = reader.number<uint64_t>(what);
    if (size < 1 || !std::in_range<int64_t>(size))
      fail(fmt::format("a size of {}; expected at least 1", size));
    if (__builtin_mul_overflow(elements, static_cast<int64_t>(size), &elements))
      fail("its sizes make it larger than any memory");
    tensor.shape.push_back(static_cast<int64_t>(size));
  }
  const int64_t row = tensor.shape.front();
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  const auto type = reader.number<uint32_t>(what);
  const auto facts = gguf_type_facts(type);
  if (!facts)
    fail(fmt::format("{} numbers are not read; expected {}; take the model in one of these types",
                     gguf_type_name(type), gguf_types_read()));
  tensor.type = facts->type;
  if (row % facts->block != 0)
    fail(fmt::format("rows of {} numbers; expected a multiple of {}, the block of {}", row, facts->block,
                     facts->name));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements / facts->block, facts->bytes, &bytes))
    fail("its sizes make it larger than any memory");
  place.bytes = static_cast<uint64_t>(bytes);
  place.offset = reader.number<uint64_t>(what);
  return place;
}

uint64_t alignment_of(const GgufHeader& header, const GgufReader& reader) {
  const GgufValue* value = header.find(kGgufAlignmentKey);
  if (value == nullptr) return kGgufUsualAlignment;
  const int64_t found = value->is_list ? 0 : value->value.integer().value_or(0);
  if (found < 8 || found > kLargestAlignment || found % 8 != 0)
    reader.fail(fmt::format("\"{}\": expected a multiple of 8 from 8 to {}, got {}", kGgufAlignmentKey,
                            kLargestAlignment, value->is_list ? "a list" : value->value.describe()));
  return static_cast<uint64_t>(found);
}

/// Checks that the tensors lie one after another and fill the rest of the file, and gives each its bytes.
void place_tensors(std::vector<PlacedTensor> places, std::span<const std::byte> bytes, GgufReader& reader,
                   GgufHeader& header) {
  const uint64_t alignment = alignment_of(header, reader);
  const auto aligned = [&](uint64_t at) { return (at + alignment - 1) / alignment * alignment; };
  if (places.empty()) reader.fail("there are no tensors in it");
  reader.skip(std::min(aligned(reader.at()) - reader.at(), reader.left()), "");
  const uint64_t begin = reader.at(), size = reader.left();
  std::sort(places.begin(), places.end(),
            [](const PlacedTensor& a, const PlacedTensor& b) { return a.offset < b.offset; });
  uint64_t next = 0;  // at most the file's size and a padding
  for (PlacedTensor& place : places) {
    const std::string what = "tensor " + quoted(place.tensor.name);
    if (place.offset != next)
      reader.fail(
          fmt::format("{}: its bytes begin at {}, expected {} (a hole, an overlap or no multiple of {})",
                      what, place.offset, next, alignment));
    if (place.offset > size || place.bytes > size - place.offset)
      reader.fail(fmt::format("cut short: {} has {} bytes from {} on, the data {}", what, place.bytes,
                              place.offset, size));
    place.tensor.bytes = bytes.subspan(begin + place.offset, place.bytes);
    next = aligned(place.offset + place.bytes);
    header.tensors.push_back(std::move(place.tensor));
  }
  if (size > next) reader.fail(fmt::format("{} bytes are left over after the last tensor", size - next));
}

void refuse_twice(std::vector<std::string_view> names, const std::string& what, const GgufReader& reader) {
  std::sort(names.begin(), names.end());
  if (const auto same = std::adjacent_find(names.begin(), names.end()); same != names.end())
    reader.fail(fmt::format("{}{} is there twice", what, quoted(*same)));
}

}  // namespace

const GgufValue* GgufHeader::find(std::string_view key) const {
  const auto at = std::lower_bound(values.begin(), values.end(), key,
                                   [](const GgufValue& value, std::string_view k) { return value.key < k; });
  return at != values.end() && at->key == key ? &*at : nullptr;
}

GgufHeader parse_gguf_header(std::span<const std::byte> bytes, const std::string& name) {
  GgufReader reader(bytes, name);
  constexpr std::string_view kMagic = "GGUF";
  if (bytes.size() < kMagic.size() || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    reader.fail("not GGUF: it does not begin with \"GGUF\"; is the name right?");
  reader.skip(kMagic.size(), "");
  const auto version = reader.number<uint32_t>("the version");
  constexpr uint32_t kSwapped2 = 2u << 24, kSwapped3 = 3u << 24;
  if (version == kSwapped2 || version == kSwapped3)
    reader.fail("its numbers are big-endian; convert it to little-endian");
  if (version != 2 && version != 3) reader.fail(fmt::format("GGUF version {}; expected 2 or 3", version));
  const auto count = [&](const char* what, uint64_t most) {
    const auto number = reader.number<uint64_t>(what);
    if (number > most) reader.fail(fmt::format("{}: {}; expected at most {}", what, number, most));
    return number;
  };
  const uint64_t tensor_count = count("the number of tensors", kMostTensors);
  const uint64_t value_count = count("the number of metadata values", kMostValues);

  GgufHeader header;
  std::vector<std::string_view> names;
  for (uint64_t i = 0; i < value_count; ++i) {
    header.values.push_back(read_value(reader));
    names.push_back(header.values.back().key);
  }
  refuse_twice(std::move(names), "", reader);
  std::sort(header.values.begin(), header.values.end(),
            [](const GgufValue& a, const GgufValue& b) { return a.key < b.key; });
  std::vector<PlacedTensor> places;
  names.clear();
  for (uint64_t i = 0; i < tensor_count; ++i) {
    places.push_back(read_tensor(reader));
    names.push_back(places.back().tensor.name);
  }
  refuse_twice(std::move(names), "tensor ", reader);
  place_tensors(std::move(places), bytes, reader, header);
  return header;
}

}  // namespace mh
