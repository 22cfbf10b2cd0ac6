// Sentences as Unicode characters, for rules that look at a character and its neighbours. Used in this
// folder only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/unicode.h"

namespace mh {

inline std::u32string to_characters(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (size_t at = 0; at < text.size();) characters.push_back(next_character(text, at));
  return characters;
}

/// White space as Python's str.split() defines it: White_Space and the four separators of ASCII.
inline bool separates_words(char32_t c) {
  return (c >= 0x1C && c <= 0x1F) || is_whitespace(c);
}

/// Puts the texts of `around` before, between and after each pair of neighbouring characters for which
/// first(a) and second(b) are true. As in s/(first)(second)/.../g, a character that ended one pair does not
/// begin the next.
struct Around {
  std::u32string_view before, between, after;
};
template <class First, class Second>
std::u32string replace_pairs(std::u32string_view text, First first, Second second, Around around) {
  std::u32string out;
  out.reserve(text.size() + text.size() / 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      out.append(around.before);
      out += text[i];
      out.append(around.between);
      out += text[++i];
      out.append(around.after);
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Puts spaces around each character for which stands_alone() is true.
template <class StandsAlone>
std::u32string space_around(std::u32string_view text, StandsAlone stands_alone) {
  std::u32string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char32_t c : text) {
    const bool alone = stands_alone(c);
    if (alone) out += U' ';
    out += c;
    if (alone) out += U' ';
  }
  return out;
}

inline std::vector<std::string> split_words(std::u32string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char32_t c : text) {
    if (separates_words(c)) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    append_utf8(words.back(), c);
  }
  return words;
}

}  // namespace mh
