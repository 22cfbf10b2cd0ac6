#include "multihead/evaluate/bleu_tokenizers.h"

#include <utf8proc.h>

#include <utility>

#include "multihead/evaluate/characters.h"

namespace mh {
namespace {

void replace_all(std::string& text, std::string_view old, std::string_view replacement) {
  for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + replacement.size())) {
    text.replace(at, old.size(), replacement);
  }
}

bool is_digit(char32_t c) {
  return c >= U'0' && c <= U'9';
}
bool is_not_digit(char32_t c) {
  return !is_digit(c);
}
bool is_period_or_comma(char32_t c) {
  return c == U'.' || c == U',';
}
// ASCII that is no letter, digit or control, without ' , - . (and the space itself is among them).
bool stands_alone_in_13a(char32_t c) {
  if (c < 0x20 || c > 0x7E || c == U'\'' || c == U',' || c == U'-' || c == U'.') return false;
  return !is_digit(c) && !(c >= U'a' && c <= U'z') && !(c >= U'A' && c <= U'Z');
}

bool is_not_number(char32_t c) {
  return !is_number(c);
}

bool is_cased(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}
// Case_Ignorable of Unicode's definition D136, as far as categories tell.
bool is_case_ignorable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::u32string_view(U"'.:\u00B7\u2018\u2019\u2024\u2027").find(c) != std::u32string_view::npos;
  }
}
// Final_Sigma: a cased letter before it and none after it, across what case ignores.
bool ends_its_word(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

std::vector<std::string> tokenize_13a(std::string_view line) {
  std::string plain(line);
  replace_all(plain, "<skipped>", "");
  for (const auto& [escaped, character] :
       {std::pair("&quot;", "\""), std::pair("&amp;", "&"), std::pair("&lt;", "<"), std::pair("&gt;", ">")}) {
    replace_all(plain, escaped, character);
  }
  std::u32string text = to_characters(" " + plain + " ");
  text = space_around(text, stands_alone_in_13a);
  text = replace_pairs(text, is_not_digit, is_period_or_comma, {U"", U" ", U" "});
  text = replace_pairs(text, is_period_or_comma, is_not_digit, {U" ", U" ", U""});
  text = replace_pairs(text, is_digit, [](char32_t c) { return c == U'-'; }, {U"", U" ", U" "});
  return split_words(text);
}

std::vector<std::string> tokenize_intl(std::string_view line) {
  // At the ends of the line nothing precedes or follows, so a number keeps its final period, as in
  // mteval-v14.
  std::u32string text = to_characters(line);
  text = replace_pairs(text, is_not_number, is_punctuation, {U"", U" ", U" "});
  text = replace_pairs(text, is_punctuation, is_not_number, {U" ", U" ", U""});
  return split_words(space_around(text, is_symbol));
}

std::vector<std::string> split_words(std::string_view line) {
  return split_words(to_characters(line));
}

std::string_view without_trailing_space(std::string_view line) {
  size_t end = 0;
  for (size_t at = 0; at < line.size();) {
    const char32_t c = next_character(line, at);
    if (!separates_words(c)) end = at;
  }
  return line.substr(0, end);
}

std::string lower_case_in_context(std::string_view line) {
  constexpr char32_t kCapitalSigma = U'\u03A3', kFinalSigma = U'\u03C2';
  const std::u32string text = to_characters(line);
  std::u32string lower;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kCapitalSigma && ends_its_word(text, i)) {
      lower += kFinalSigma;
    } else {
      append_lower_case(lower, text[i]);
    }
  }
  std::string out;
  for (const char32_t c : lower) append_utf8(out, c);
  return out;
}

}  // namespace mh
