#include "multihead/base/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/utf8.h"

namespace mh {
namespace {

int width_of(uint32_t code) {
  if (code == 0 || (code >= 0x300 && code <= 0x36F) || (code >= 0x200B && code <= 0x200F) || code == 0xFE0F)
    return 0;
  const bool wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
                    (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
                    (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                    (code >= 0x1F300 && code <= 0x1FAFF) || (code >= 0x20000 && code <= 0x3FFFD);
  return wide ? 2 : 1;
}

/// The code point of a character's bytes.
uint32_t code_of(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  uint32_t code = bytes.size() == 1 ? first : first & (0xFFu >> (bytes.size() + 1));
  for (size_t i = 1; i < bytes.size(); ++i) code = code << 6 | (static_cast<unsigned char>(bytes[i]) & 0x3Fu);
  return code;
}

}  // namespace

std::vector<TerminalCharacter> terminal_characters(std::string_view text) {
  std::vector<TerminalCharacter> all;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    size = std::min(size, text.size() - at);
    const std::string_view bytes = text.substr(at, size);
    all.push_back({bytes, width_of(code_of(bytes))});
    at += size;
  }
  return all;
}

int display_width(std::string_view text) {
  int width = 0;
  for (const TerminalCharacter& character : terminal_characters(text)) width += character.width;
  return width;
}

namespace {

/// What may not stand in a terminal's line is shown as a dot.
std::string printable(std::string_view label) {
  std::string text;
  for (const TerminalCharacter& character : terminal_characters(label))
    text += is_unprintable(code_of(character.bytes)) ? std::string_view(".") : character.bytes;
  return text;
}

}  // namespace

std::string cell_text(std::string_view given, int width) {
  std::string label = printable(given);
  if (display_width(label) <= width) return label;
  std::string text;
  int used = 0;
  for (const TerminalCharacter& character : terminal_characters(label)) {
    if (used + character.width > width - 1) break;
    text += character.bytes;
    used += character.width;
  }
  return text + "\u2026";
}

std::string wrapped(const std::string& text, const std::string& indent, size_t width,
                    const std::string& further) {
  std::string out, line = indent;
  bool empty = true;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(" \n", at);
    if (begin == std::string::npos) break;
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!empty && static_cast<size_t>(display_width(line) + 1 + display_width(word)) > width) {
      out += line + "\n";
      line = indent + further;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    at = end;
  }
  return out + line + "\n";
}

std::string grouped(int64_t number) {
  return fmt::format("{}", fmt::group_digits(number));
}

}  // namespace mh
