#include "multihead/evaluate/moses_tokenizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "multihead/evaluate/characters.h"

namespace mh {
namespace {

// Stands for one period of a run of them while single periods are looked at; beyond Unicode, so no text has
// it.
constexpr char32_t kDotOfRun = 0x110000;

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Accents and variation selectors, which Unicode does not count as alphabetic as it does other marks.
bool is_no_vowel_sign(char32_t c) {
  return c < 0x0591 || (c >= 0x1AB0 && c <= 0x1AFF) || (c >= 0x1DC0 && c <= 0x1DFF) ||
         (c >= 0x20D0 && c <= 0x20FF) || (c >= 0xFE00 && c <= 0xFE2F) || c >= 0xE0100;
}
bool is_alphabetic(char32_t c) {
  if (c == kDotOfRun) return false;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MC:
      return true;
    case UTF8PROC_CATEGORY_MN:
      return !is_no_vowel_sign(c);
    default:
      return c >= 0x24B6 && c <= 0x24E9;  // circled letters
  }
}
bool is_lower(char32_t c) {
  return c != kDotOfRun && category(c) == UTF8PROC_CATEGORY_LL;
}
bool is_any_number(char32_t c) {
  return c != kDotOfRun && is_number(c);
}
bool is_no_number(char32_t c) {
  return !is_any_number(c);
}
bool is_comma(char32_t c) {
  return c == U',';
}

bool is_special(char32_t c) {
  if (is_alphabetic(c) || category(c) == UTF8PROC_CATEGORY_ND || separates_words(c)) return false;
  return c != U'.' && c != U'\'' && c != U'`' && c != U',' && c != U'-';
}

// One space for each stretch of white space, none at the ends, no control characters.
std::u32string tidy(std::u32string_view text) {
  std::u32string out;
  bool gap = false;
  for (const char32_t c : text) {
    if (separates_words(c)) {
      gap = !out.empty();
      continue;
    }
    if (c < 0x20) continue;
    if (gap) out += U' ';
    gap = false;
    out += c;
  }
  return out;
}

// A run of two or more periods becomes one word.
std::u32string hold_runs_of_periods(std::u32string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && text[end] == U'.') ++end;
    if (end - i >= 2) {
      out += U' ';
      out.append(end - i, kDotOfRun);
      out += U' ';
    } else {
      end = i + 1;
      out += text[i];
    }
    i = end;
  }
  return out;
}

std::u32string split_commas(std::u32string text) {
  text = replace_pairs(text, is_no_number, is_comma, {U"", U" ", U" "});
  text = replace_pairs(text, is_comma, is_no_number, {U" ", U" ", U""});
  if (text.size() >= 2 && text.back() == U',' && is_any_number(text[text.size() - 2])) {
    text.replace(text.size() - 1, 1, U" , ");
  }
  return text;
}

// s/(before)'(after)/\1<replacement>\2/g
template <class Before, class After>
std::u32string replace_apostrophes(std::u32string_view text, Before before, After after,
                                   std::u32string_view replacement) {
  std::u32string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (i + 2 < text.size() && text[i + 1] == U'\'' && before(text[i]) && after(text[i + 2])) {
      out.append(replacement);
      out += text[i + 2];
      i += 2;
    }
  }
  return out;
}

std::u32string split_apostrophes(std::u32string text, MosesLanguage language) {
  if (language != MosesLanguage::kEnglish) {
    return space_around(text, [](char32_t c) { return c == U'\''; });
  }
  const auto other = [](char32_t c) { return !is_alphabetic(c); };
  const auto other_no_number = [](char32_t c) { return !is_alphabetic(c) && !is_any_number(c); };
  text = replace_apostrophes(text, other, other, U" ' ");
  text = replace_apostrophes(text, other_no_number, is_alphabetic, U" ' ");
  text = replace_apostrophes(text, is_alphabetic, other, U" ' ");
  text = replace_apostrophes(text, is_alphabetic, is_alphabetic, U" '");
  return replace_apostrophes(
      text, is_any_number, [](char32_t c) { return c == U's'; }, U" '");  // the 1990's
}

std::vector<std::u32string> words_of(std::u32string_view text) {
  std::vector<std::u32string> words;
  bool inside = false;
  for (const char32_t c : text) {
    const bool separator = c != kDotOfRun && separates_words(c);
    if (!separator && !inside) words.emplace_back();
    if (!separator) words.back() += c;
    inside = !separator;
  }
  return words;
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c == kDotOfRun ? U'.' : c);
  return out;
}

// Does words[i], which ends in a period, keep it?
bool keeps_period(const std::vector<std::u32string>& words, size_t i, MosesLanguage language) {
  const std::u32string_view word = std::u32string_view(words[i]).substr(0, words[i].size() - 1);
  if (word.find(U'.') != std::u32string_view::npos && std::any_of(word.begin(), word.end(), is_alphabetic)) {
    return true;  // z.B. and U.S.
  }
  const bool last = i + 1 == words.size();
  if (!last && is_lower(words[i + 1][0])) return true;
  switch (period_after(to_utf8(word), language)) {
    case PeriodAfter::kBelongs:
      return true;
    case PeriodAfter::kBelongsBeforeNumber:
      return !last && words[i + 1][0] >= U'0' && words[i + 1][0] <= U'9';
    case PeriodAfter::kSplits:
      break;
  }
  return false;
}

}  // namespace

std::vector<std::string> tokenize_moses(std::string_view line, MosesLanguage language) {
  std::u32string text = tidy(to_characters(line));
  text = space_around(text, is_special);
  text = hold_runs_of_periods(text);
  text = split_commas(std::move(text));
  text = split_apostrophes(std::move(text), language);
  const std::vector<std::u32string> words = words_of(text);

  std::vector<std::string> out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].size() >= 2 && words[i].back() == U'.' && !keeps_period(words, i, language)) {
      out.push_back(to_utf8(words[i].substr(0, words[i].size() - 1)));
      out.emplace_back(".");
    } else if (i + 1 == words.size() && words[i].ends_with(U".'")) {
      // A quotation ends the line.
      if (words[i].size() > 2) out.push_back(to_utf8(words[i].substr(0, words[i].size() - 2)));
      out.emplace_back(".");
      out.emplace_back("'");
    } else {
      out.push_back(to_utf8(words[i]));
    }
  }
  return out;
}

}  // namespace mh
