// Byte-level tokenizers (GPT-2): every byte of a text is written as a printable character.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/aligned_text.h"

namespace mh {

/// GPT-2's words: contractions, " letters", " digits", " other", whitespace. The parts cover the text.
std::vector<Part> gpt2_words(std::string_view text);

/// The printable character, in UTF-8, by which GPT-2 writes each byte.
const std::array<std::string, 256>& byte_level_alphabet();
/// The byte that a character of this alphabet stands for; -1 for other characters.
int byte_of_character(char32_t character);

}  // namespace mh
