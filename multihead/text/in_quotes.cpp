#include "multihead/text/in_quotes.h"

#include <fmt/format.h>

#include "multihead/base/utf8.h"
#include "multihead/text/unicode.h"

namespace mh {

std::string in_quotes(std::string_view text, size_t most) {
  const size_t most_bytes = 4 * most;
  const std::string valid = to_valid_utf8(text.substr(0, most_bytes));
  std::string result = "'";
  size_t characters = 0;
  size_t at = 0;
  while (at < valid.size() && characters++ < most) {
    const char32_t c = next_character(valid, at);
    if (is_unprintable(c)) {
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      append_utf8(result, c);
    }
  }
  return result + (at < valid.size() || text.size() > most_bytes ? "…'" : "'");
}

}  // namespace mh
