// Splits a sentence into words before BLEU counts them, with the same result as sacreBLEU's tokenizers of
// these names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// mteval-v13a: ASCII punctuation and symbols become words of their own; so do a period or comma, unless
/// between digits, and a hyphen after a digit. &quot; &amp; &lt; &gt; are unescaped first. REQUIRES
/// (as do all here): `line` is UTF-8 without line ends.
std::vector<std::string> tokenize_13a(std::string_view line);

/// mteval-v14 "international": every symbol (S*) becomes a word of its own, and every punctuation character
/// (P*) unless between numbers (N*).
std::vector<std::string> tokenize_intl(std::string_view line);

/// Splits at white space, including the line separators of ASCII and Unicode.
std::vector<std::string> split_words(std::string_view line);

/// Returns `line` up to the end of its last word.
std::string_view without_trailing_space(std::string_view line);

/// Lower case as Python's str.lower(): a capital sigma at the end of a word becomes a final one.
std::string lower_case_in_context(std::string_view line);

}  // namespace mh
