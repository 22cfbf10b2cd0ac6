#include "multihead/text/in_quotes.h"

#include <fmt/format.h>

#include "multihead/text/unicode.h"

namespace mh {

std::string in_quotes(std::string_view text) {
  constexpr int kMostCharacters = 40;
  constexpr size_t kMostBytes = 4 * kMostCharacters;
  const std::string valid = to_valid_utf8(text.substr(0, kMostBytes));
  std::string result = "'";
  int characters = 0;
  size_t at = 0;
  while (at < valid.size() && characters++ < kMostCharacters) {
    const char32_t c = next_character(valid, at);
    const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
    if (control) {
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      append_utf8(result, c);
    }
  }
  return result + (at < valid.size() || text.size() > kMostBytes ? "…'" : "'");
}

}  // namespace mh
