#include "multihead/text/byte_level.h"

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

}  // namespace mh
