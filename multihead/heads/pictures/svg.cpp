#include "multihead/heads/pictures/svg.h"

#include <fmt/format.h>

#include "multihead/text/unicode.h"

namespace mh {

std::string xml_text(std::string_view text) {
  const std::string valid = to_valid_utf8(text);
  std::string out;
  for (size_t at = 0; at < valid.size();) {
    const char32_t c = next_character(valid, at);
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        // XML 1.0, production 2: neither of these is a character.
        append_utf8(out, c < 0x20 || c == 0x7F || c == 0xFFFE || c == 0xFFFF ? U'\uFFFD' : c);
    }
  }
  return out;
}

std::string svg_page(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height);
}

}  // namespace mh
