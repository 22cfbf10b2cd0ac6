// Unicode: characters of UTF-8 (base/utf8.h checks that a text is UTF-8), classes of characters, normal
// forms, lower case. Built on utf8proc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// Bytes of the character whose first byte is `lead`. REQUIRES: lead starts a character of valid UTF-8.
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
/// Returns the character at byte `at` and moves `at` to the next one. REQUIRES: text is valid UTF-8, at <
/// text.size().
char32_t next_character(std::string_view text, size_t& at);
void append_utf8(std::string& text, char32_t character);
bool is_ascii(std::string_view text);
/// Makes valid UTF-8 of any bytes: each maximal broken part becomes U+FFFD, as Unicode recommends
/// (and Rust does).
std::string to_valid_utf8(std::string_view bytes);

bool is_whitespace(char32_t character);   ///< White_Space
bool is_letter(char32_t character);       ///< L*
bool is_number(char32_t character);       ///< N*
bool is_mark(char32_t character);         ///< M*
bool is_upper_case(char32_t character);   ///< Lu, Lt
bool is_lower_case(char32_t character);   ///< Ll
bool is_punctuation(char32_t character);  ///< P*
bool is_symbol(char32_t character);       ///< S*
/// \w of regular expressions (UTS 18): alphabetic, marks, decimal digits, connectors, joiners.
bool is_word(char32_t character);
/// The text with what is_unprintable() (base/utf8.h) as \u001b and the like, and bytes that are not UTF-8 as U+FFFD: names from
/// files where people read them.
std::string printable(std::string_view text);

enum class NormalForm { kNfc, kNfkc, kNfd, kNfkd };
/// Characters whose decomposition is newer than the tables of Hugging Face `tokenizers` 0.23, such as U+32FF.
bool is_left_whole(char32_t character);
/// The normal form of UAX 15, as Hugging Face has it: is_left_whole() characters stay. REQUIRES: text is
/// valid UTF-8.
std::string normal_form(std::string_view text, NormalForm form);
/// Lower case character by character, without context: capital sigma always becomes σ, never a final ς.
std::string lower_case(std::string_view text);
/// Appends the lower case of a character to `out` and returns how many characters that were: one, and two
/// for U+0130 only.
int append_lower_case(std::u32string& out, char32_t character);

/// One character of a rewritten text, and how it came from the original: change 0 replaces one character,
/// +1 is inserted after the last, -n replaces one and removes the n after it.
struct Rewritten {
  char32_t character;
  int change;
};
/// The same as normal_form(), with the origin of each character.
std::vector<Rewritten> rewrite_normal_form(std::string_view text, NormalForm form);

}  // namespace mh
