// Classes of characters as the normalizers and pre-tokenizers of Hugging Face `tokenizers` 0.23 have them:
// they follow older versions of Unicode than utf8proc does (unicode.h), BERT's that of Unicode 8. The tables
// are made from that library's answer for every character (tests/oracles/character_classes.py).
#pragma once

namespace mh {

/// Removed by BERT's clean_text: U+0000, U+FFFD, Cc, Cf, Co, but not tab, line feed and carriage return.
bool is_bert_control(char32_t character);
/// Removed by BERT's strip_accents after NFD: Mn.
bool is_bert_mark(char32_t character);
/// Set apart by BERT's handle_chinese_chars: the blocks of ideographs, not kana or hangul.
bool is_bert_ideograph(char32_t character);
/// Removed by StripAccents: M.
bool is_combining_mark(char32_t character);
/// A word of its own for BertPreTokenizer and Punctuation: P, and ASCII symbols such as '$'.
bool is_split_punctuation(char32_t character);

// Characters that the regular expressions (Unicode 16) and Digits (17) know and an older utf8proc does not.
bool is_newer_letter(char32_t character);      ///< L
bool is_newer_upper_case(char32_t character);  ///< Lu, Lt
bool is_newer_lower_case(char32_t character);  ///< Ll
bool is_newer_number(char32_t character);      ///< N
bool is_newer_mark(char32_t character);        ///< M
bool is_newer_numeric(char32_t character);     ///< N, for Digits

}  // namespace mh
