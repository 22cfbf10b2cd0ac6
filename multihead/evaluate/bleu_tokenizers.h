// How a sentence becomes words before BLEU counts them. The same words as sacreBLEU's tokenizers of these
// names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// mteval-v13a: ASCII punctuation and symbols stand alone, a period or comma unless between digits, a hyphen
/// after a digit; &quot; &amp; &lt; &gt; are unescaped first. REQUIRES (as all here): `line` is UTF-8 without
/// line ends.
std::vector<std::string> tokenize_13a(std::string_view line);

/// mteval-v14 "international": every symbol (S*) stands alone, and every punctuation (P*) unless between
/// numbers (N*).
std::vector<std::string> tokenize_intl(std::string_view line);

/// What white space separates, the line separators of ASCII and Unicode included.
std::vector<std::string> split_words(std::string_view line);

/// `line` up to the end of its last word.
std::string_view without_trailing_space(std::string_view line);

/// Lower case as Python's str.lower(): a capital sigma at the end of a word becomes a final one.
std::string lower_case_in_context(std::string_view line);

}  // namespace mh
