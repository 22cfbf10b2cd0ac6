#include "multihead/text/word_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "multihead/text/character_classes.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// What the expressions differ in. All have, in this order: contractions, letters, numbers, other characters
/// (with one space before them), whitespace.
struct WordForm {
  std::string_view expression;
  enum class Letters {
    kAfterSpace,  ///< " ?\p{L}+", and numbers likewise
    kAfterOther,  ///< "[^\r\n\p{L}\p{N}]?\p{L}+"
    kCased,       ///< the same, but a word ends where a capital follows a small letter
  } letters;
  enum class Contractions { kNone, kFirst, kFirstAnyCase, kBehindAnyCase } contractions;
  int most_digits;                ///< of one number; 0: any
  std::string_view behind_other;  ///< characters that a run of others takes along
  bool line_ends;                 ///< "\s*[\r\n]+": whitespace up to the last line end is a word
};

#define MH_ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"
#define MH_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define MH_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define MH_BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define MH_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define MH_TIKTOKEN \
  "[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
constexpr std::array<WordForm, 5> kForms = {{
    {MH_ENDINGS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", WordForm::Letters::kAfterSpace,
     WordForm::Contractions::kFirst, 0, "", false},
    {"(?i:" MH_ENDINGS ")|" MH_BEFORE "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" MH_SPACES,
     WordForm::Letters::kAfterOther, WordForm::Contractions::kFirstAnyCase, 3, "\r\n", true},
    {"(?i:" MH_ENDINGS ")|" MH_BEFORE "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" MH_SPACES,
     WordForm::Letters::kAfterOther, WordForm::Contractions::kFirstAnyCase, 1, "\r\n", true},
    {MH_BEFORE MH_UPPER "*" MH_LOWER "+(?i:" MH_ENDINGS ")?|" MH_BEFORE MH_UPPER "+" MH_LOWER
                        "*(?i:" MH_ENDINGS ")?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" MH_SPACES,
     WordForm::Letters::kCased, WordForm::Contractions::kBehindAnyCase, 3, "\r\n/", true},
    {MH_BEFORE MH_UPPER "*" MH_LOWER "+|" MH_BEFORE MH_UPPER "+" MH_LOWER
                        "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" MH_SPACES,
     WordForm::Letters::kCased, WordForm::Contractions::kNone, 1, "\r\n/", true},
}};

/// The same words in tiktoken's writing, of which possessive repeats and a line end less change nothing.
constexpr std::pair<std::string_view, WordRule> kOtherExpressions[] = {
    {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", WordRule::kGpt2},
    {"(?i:" MH_ENDINGS ")|" MH_TIKTOKEN, WordRule::kLlama3},
    {"'(?i:[sdmt]|ll|ve|re)|" MH_TIKTOKEN, WordRule::kLlama3},
};
#undef MH_TIKTOKEN
#undef MH_ENDINGS
#undef MH_UPPER
#undef MH_LOWER
#undef MH_BEFORE
#undef MH_SPACES

enum class Sort { letter, number, space, other, end };

/// Finds the word that starts at a place, alternative by alternative.
class WordFinder {
 public:
  WordFinder(std::string_view text, const WordForm& form) : text_(text), form_(form) {}

  size_t end_of_word(size_t at) const {
    using Contractions = WordForm::Contractions;
    if (form_.contractions == Contractions::kFirst || form_.contractions == Contractions::kFirstAnyCase) {
      if (const size_t end = contraction(at, form_.contractions == Contractions::kFirstAnyCase); end > at)
        return end;
    }
    if (const size_t end = letters(at); end > at) return end;
    if (const size_t end = numbers(at); end > at) return end;
    const size_t start = text_[at] == ' ' ? at + 1 : at;
    if (sort(start) == Sort::other) {
      size_t end = run(start, Sort::other);
      while (end < text_.size() && form_.behind_other.find(text_[end]) != std::string_view::npos) ++end;
      return end;
    }
    return whitespace(at);
  }

 private:
  Sort sort(size_t at) const {
    if (at >= text_.size()) return Sort::end;
    const char32_t c = next_character(text_, at);
    if (c < 0x80) {
      if ((c | 32) >= 'a' && (c | 32) <= 'z') return Sort::letter;
      if (c >= '0' && c <= '9') return Sort::number;
      return is_whitespace(c) ? Sort::space : Sort::other;
    }
    return is_whitespace(c)                     ? Sort::space
           : is_letter(c) || is_newer_letter(c) ? Sort::letter
           : is_number(c) || is_newer_number(c) ? Sort::number
                                                : Sort::other;
  }
  size_t behind(size_t at) const { return at + utf8_length(text_[at]); }
  bool is_line_end(size_t at) const { return text_[at] == '\n' || text_[at] == '\r'; }
  size_t run(size_t at, Sort of) const {
    while (sort(at) == of) at = behind(at);
    return at;
  }

  size_t contraction(size_t at, bool any_case) const {
    if (at >= text_.size() || text_[at] != '\'') return at;
    std::string next;  // the two letters behind; the long s is an s, too
    for (size_t i = at + 1; i < text_.size() && next.size() < 2;) {
      const char32_t c = next_character(text_, i);
      if (any_case && c == 0x17F && next.empty()) return i;
      next += c >= 0x80                          ? '?'
              : any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32)
                                                 : static_cast<char>(c);
    }
    for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      if (next.starts_with(ending)) return at + 1 + ending.size();
    }
    return at;
  }

  size_t letters(size_t at) const {
    using Letters = WordForm::Letters;
    if (form_.letters == Letters::kAfterSpace) return run_behind_space(at, Sort::letter);
    const bool other = sort(at) == Sort::other || (sort(at) == Sort::space && !is_line_end(at));
    const size_t start = other ? behind(at) : at;
    if (form_.letters == Letters::kAfterOther)
      return sort(start) == Sort::letter ? run(start, Sort::letter) : at;
    for (const bool small_letters_needed : {true, false}) {
      for (const size_t begin : {start, at}) {
        const size_t end = cased(begin, small_letters_needed);
        if (end > begin) {
          return form_.contractions == WordForm::Contractions::kNone ? end : contraction(end, true);
        }
      }
    }
    return at;
  }
  /// "[UPPER]*[LOWER]+" or, without the need, "[UPPER]+[LOWER]*"; both classes have letters without case and
  /// marks.
  size_t cased(size_t begin, bool small_letters_needed) const {
    size_t at = begin;
    size_t last_small = begin;  // behind the last character of the run that is LOWER as well
    while (at < text_.size() && upper(at)) {
      const bool small = lower(at);
      at = behind(at);
      if (small) last_small = at;
    }
    if (at == begin && !small_letters_needed) return begin;
    const size_t run_end = at;
    while (at < text_.size() && lower(at)) at = behind(at);
    return at > run_end || !small_letters_needed ? at : last_small;
  }
  bool without_case(char32_t c) const {
    const bool letter = is_letter(c) || is_newer_letter(c);
    const bool cased =
        is_upper_case(c) || is_lower_case(c) || is_newer_upper_case(c) || is_newer_lower_case(c);
    return (letter && !cased) || is_mark(c) || is_newer_mark(c);
  }
  bool upper(size_t at) const {
    const char32_t c = next_character(text_, at);
    if (c < 0x80) return c >= 'A' && c <= 'Z';
    return is_upper_case(c) || is_newer_upper_case(c) || without_case(c);
  }
  bool lower(size_t at) const {
    const char32_t c = next_character(text_, at);
    if (c < 0x80) return c >= 'a' && c <= 'z';
    return is_lower_case(c) || is_newer_lower_case(c) || without_case(c);
  }

  size_t numbers(size_t at) const {
    if (form_.most_digits == 0) return run_behind_space(at, Sort::number);
    for (int i = 0; i < form_.most_digits && sort(at) == Sort::number; ++i) at = behind(at);
    return at;
  }
  size_t run_behind_space(size_t at, Sort of) const {
    const size_t start = text_[at] == ' ' ? at + 1 : at;
    return sort(start) == of ? run(start, of) : at;
  }

  /// Whitespace before a word leaves its last character to that word (or alone, when it is not a space).
  size_t whitespace(size_t at) const {
    size_t end = at;
    size_t last = at;      // where the run's last character starts
    size_t line_end = at;  // behind its last line end
    for (; sort(end) == Sort::space; end = behind(end)) {
      last = end;
      if (is_line_end(end)) line_end = end + 1;
    }
    if (form_.line_ends && line_end > at) return line_end;
    return end < text_.size() && last > at ? last : end;
  }

  std::string_view text_;
  const WordForm& form_;
};

}  // namespace

std::vector<Part> words_by_rule(std::string_view text, WordRule rule) {
  const WordFinder finder(text, kForms[static_cast<size_t>(rule)]);
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    at = finder.end_of_word(at);
    parts.push_back({begin, at, true});
  }
  return parts;
}

std::string_view expression_of(WordRule rule) {
  return kForms[static_cast<size_t>(rule)].expression;
}

std::optional<WordRule> word_rule_of(std::string_view expression) {
  const auto found = std::find_if(kForms.begin(), kForms.end(),
                                  [&](const WordForm& form) { return form.expression == expression; });
  if (found != kForms.end()) return static_cast<WordRule>(found - kForms.begin());
  for (const auto& [other, rule] : kOtherExpressions) {
    if (other == expression) return rule;
  }
  return std::nullopt;
}

}  // namespace mh
