#include "multihead/text/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"

namespace mh {
namespace {

/// Bytes of the valid character at `at`, or 0 with `broken` = how many bytes form the maximal broken part.
size_t valid_length(std::string_view text, size_t at, size_t& broken) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  broken = 1;
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i, ++broken) {
    if (at + i >= text.size()) return 0;
    const unsigned char b = byte(at + i);
    if (b < (i == 1 ? low : 0x80) || b > (i == 1 ? high : 0xBF)) return 0;
  }
  return length;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}
bool between(utf8proc_category_t x, utf8proc_category_t low, utf8proc_category_t high) {
  return low <= x && x <= high;
}

}  // namespace

char32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const size_t length = utf8_length(text[at]);
  char32_t c = byte(0);
  if (length == 2) {
    c = (c & 0x1F) << 6 | (byte(1) & 0x3F);
  } else if (length == 3) {
    c = (c & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  } else if (length == 4) {
    c = (c & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
  at += length;
  return c;
}

void append_utf8(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
    return;
  }
  if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    }
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
  }
  text += static_cast<char>(0x80 | (c & 0x3F));
}

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  size_t broken = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = valid_length(bytes, at, broken);
    if (length > 0) {
      text += bytes.substr(at, length);
    } else {
      append_utf8(text, U'\uFFFD');
    }
    at += length > 0 ? length : broken;
  }
  return text;
}

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
bool is_letter(char32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}
bool is_number(char32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}
bool is_mark(char32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}
bool is_upper_case(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || category(c) == UTF8PROC_CATEGORY_LT;
}
bool is_lower_case(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL;
}
bool is_punctuation(char32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}
bool is_symbol(char32_t c) {
  return between(category(c), UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO);
}

bool is_word(char32_t c) {
  const auto kind = category(c);
  if (between(kind, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL)) return true;  // L*, M*, Nd, Nl
  if (kind == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D) return true;
  // Other_Alphabetic outside L, M and N: circled and squared Latin letters.
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

std::string printable(std::string_view text) {
  const std::string valid = to_valid_utf8(text);
  std::string line;
  for (size_t at = 0; at < valid.size();) {
    const char32_t c = next_character(valid, at);
    if (is_unprintable(c)) {
      line += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      append_utf8(line, c);
    }
  }
  return line;
}

int append_lower_case(std::u32string& out, char32_t c) {
  if (c < 0x80) {
    out += c >= 'A' && c <= 'Z' ? c + 32 : c;
    return 1;
  }
  if (c == 0x130) {  // the one capital whose lower case is two characters whatever stands around it
    out += U"i\u0307";
    return 2;
  }
  out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  return 1;
}

std::string lower_case(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    characters.clear();
    append_lower_case(characters, next_character(text, at));
    for (const char32_t c : characters) append_utf8(lower, c);
  }
  return lower;
}

}  // namespace mh
