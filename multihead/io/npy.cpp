#include "multihead/io/npy.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

#include "multihead/base/error.h"

namespace mh {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of arrays are copied as they are");

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kPreamble = 10;  // magic, version, length of the header in 16 bits
constexpr size_t kAlignment = 64;

template <class T>
std::string write(std::span<const int64_t> shape, std::span<const T> data, std::string_view type) {
  std::string sizes;
  double product = 1;  // in double: sizes may claim more than any integer holds
  bool negative = false;
  for (int64_t size : shape) {
    negative = negative || size < 0;
    product *= static_cast<double>(size);
    sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
  }
  if (negative || product != static_cast<double>(data.size()))
    throw ShapeError(fmt::format("an array of shape ({}) has {} numbers", sizes, data.size()));
  if (shape.size() == 1) sizes += ',';
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  // NumPy leaves room for the largest first size to grow to 20 digits, so that a file can be appended to in
  // place.
  if (!shape.empty()) header.append(21 - fmt::format("{}", shape[0]).size(), ' ');
  const size_t unpadded = kPreamble + header.size() + 1;
  header.append(kAlignment - unpadded % kAlignment,
                ' ');  // a whole block when it fits exactly: as NumPy does
  header += '\n';
  if (header.size() > std::numeric_limits<uint16_t>::max())
    throw ShapeError(fmt::format("an array of {} dimensions is too many for npy", shape.size()));
  const auto length = static_cast<uint16_t>(header.size());
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += header;
  if (!data.empty()) bytes.append(reinterpret_cast<const char*>(data.data()), data.size_bytes());
  return bytes;
}

// The header is a Python dictionary of three known keys; this reads that and nothing more.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  std::string type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && type.empty()) {
        type = quoted();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        fail("a key that is unknown or stands twice");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (rest_.find_first_not_of(' ') != rest_.size() - 1 || !rest_.ends_with('\n'))
      fail("no line end after it");
    if (type.empty() || !fortran_order || !shape) fail("descr, fortran_order or shape is missing");
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError(fmt::format("{}: broken .npy header: {}", name_, what));
  }
  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool accept(char wanted) {
    skip_spaces();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("expected '{}'", wanted));
  }
  std::string quoted() {
    skip_spaces();
    const char quote = rest_.starts_with('"') ? '"' : '\'';
    expect(quote);
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail("a text without its end");
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("expected True or False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t size = 0;
      const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (code != std::errc() || size < 0) fail("shape: expected sizes of 0 and more that fit 63 bits");
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      sizes.push_back(size);
      if (!accept(',')) {
        if (sizes.size() == 1) fail("shape: a tuple of one size ends with a comma");
        expect(')');
        break;
      }
    }
    return sizes;
  }

  std::string_view rest_;
  std::string_view name_;
};

/// Bytes of an element of a type that is read; 0 for other types.
int64_t size_of(std::string_view type) {
  if (type == "|b1") return 1;
  if (type == "<f4" || type == "<i4") return 4;
  return type == "<f8" || type == "<i8" ? 8 : 0;
}

template <class T>
std::vector<T> copy_elements(std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace

std::string write_npy(std::span<const int64_t> shape, std::span<const float> data) {
  return write(shape, data, "<f4");
}
std::string write_npy(std::span<const int64_t> shape, std::span<const int32_t> data) {
  return write(shape, data, "<i4");
}
std::string write_npy(std::span<const int64_t> shape, std::span<const int64_t> data) {
  return write(shape, data, "<i8");
}

NpyArray read_npy(std::string_view bytes, std::string_view name) {
  if (bytes.size() < kPreamble || !bytes.starts_with(kMagic)) {
    throw FormatError(fmt::format("{}: not a .npy file of version 1.0", name));
  }
  uint16_t length = 0;
  std::memcpy(&length, bytes.data() + kMagic.size(), sizeof length);
  if (length > bytes.size() - kPreamble)
    throw FormatError(fmt::format("{}: cut short inside its .npy header", name));
  HeaderParser header(bytes.substr(kPreamble, length), name);
  header.parse();
  if (*header.fortran_order) {
    throw FormatError(
        fmt::format("{}: expected C order, got Fortran order; save np.ascontiguousarray(x)", name));
  }
  const int64_t size = size_of(header.type);
  if (size == 0) {
    throw FormatError(fmt::format("{}: expected elements <f4, <f8, <i4, <i8 or |b1, got {}", name,
                                  header.type.substr(0, 20)));
  }
  const std::string_view data = bytes.substr(kPreamble + length);
  int64_t expected = size;
  for (int64_t extent : *header.shape) {
    if (__builtin_mul_overflow(expected, extent, &expected)) {
      throw FormatError(fmt::format("{}: its shape is larger than any memory", name));
    }
  }
  if (expected != static_cast<int64_t>(data.size())) {
    throw FormatError(fmt::format("{}: expected {} bytes of elements, got {}", name, expected, data.size()));
  }
  NpyArray array;
  array.shape = *std::move(header.shape);
  if (header.type == "<f4") array.data = copy_elements<float>(data);
  if (header.type == "<f8") {
    const std::vector<double> wide = copy_elements<double>(data);
    array.data = std::vector<float>(wide.begin(), wide.end());
  }
  if (header.type == "<i4") array.data = copy_elements<int32_t>(data);
  if (header.type == "<i8") array.data = copy_elements<int64_t>(data);
  if (header.type == "|b1") array.data = std::vector<bool>(data.begin(), data.end());
  return array;
}

}  // namespace mh
