#include "multihead/base/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace mh {
namespace {

// Bytes of the sequence that begins at `at`, or 0 when it is not well formed.
size_t sequence_length(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;  // what the second byte may be
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;   // overlong
    if (first == 0xED) high = 0x9F;  // surrogates
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;   // overlong
    if (first == 0xF4) high = 0x8F;  // above U+10FFFF
  }
  if (length == 0 || bytes.size() - at < length) return 0;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

size_t first_invalid_utf8(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    uint64_t eight = 0;
    if (bytes.size() - at >= sizeof eight) {
      std::memcpy(&eight, bytes.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {  // eight ASCII characters at once
        at += sizeof eight;
        continue;
      }
    }
    const size_t length = sequence_length(bytes, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string utf8_problem(std::string_view bytes) {
  const size_t at = first_invalid_utf8(bytes);
  if (at == std::string_view::npos) return "";
  return fmt::format("byte {} (0x{:02x}) is not UTF-8", at + 1, static_cast<uint8_t>(bytes[at]));
}

bool is_unprintable(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  const bool ends_a_line = c == 0x2028 || c == 0x2029;
  const bool turns_the_writing = (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return control || ends_a_line || turns_the_writing;
}

}  // namespace mh
