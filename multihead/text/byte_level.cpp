#include "multihead/text/byte_level.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/utf8.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// Byte -> character: printable Latin-1 stands for itself, the rest for U+0100, U+0101, … in order.
std::array<char32_t, 256> byte_characters() {
  std::array<char32_t, 256> table;
  char32_t next = 256;
  for (char32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE);
    table[b] = printable ? b : next++;
  }
  return table;
}

void append_as_bytes(std::string& shown, std::string_view bytes) {
  for (const char byte : bytes) shown += fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte));
}

}  // namespace

const std::array<std::string, 256>& byte_level_alphabet() {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> made;
    const auto characters = byte_characters();
    for (size_t b = 0; b < 256; ++b) append_utf8(made[b], characters[b]);
    return made;
  }();
  return table;
}

int byte_of_character(char32_t c) {
  static const std::array<int16_t, 512> table = [] {
    std::array<int16_t, 512> made;
    made.fill(-1);
    const auto characters = byte_characters();
    for (size_t b = 0; b < 256; ++b) made[characters[b]] = static_cast<int16_t>(b);
    return made;
  }();
  return c < table.size() ? table[c] : -1;
}

std::optional<std::string> bytes_of_piece(std::string_view piece) {
  std::string bytes;
  for (size_t at = 0; at < piece.size();) {
    const int byte = byte_of_character(next_character(piece, at));
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string shown_piece(std::string_view piece) {
  const std::string bytes = bytes_of_piece(piece).value_or(std::string(piece));
  std::string_view rest = bytes;
  std::string shown;
  while (!rest.empty()) {
    const std::string_view whole = rest.substr(0, std::min(first_invalid_utf8(rest), rest.size()));
    for (size_t at = 0; at < whole.size();) {
      const size_t begin = at;
      const char32_t c = next_character(whole, at);
      if (c == U' ') {
        shown += "\u2581";
      } else if (is_unprintable(c)) {
        append_as_bytes(shown, whole.substr(begin, at - begin));
      } else {
        shown += whole.substr(begin, at - begin);
      }
    }
    rest.remove_prefix(whole.size());
    append_as_bytes(shown, rest.substr(0, 1));
    rest.remove_prefix(std::min<size_t>(rest.size(), 1));
  }
  return shown;
}

}  // namespace mh
