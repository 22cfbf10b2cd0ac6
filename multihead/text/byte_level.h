// Byte-level tokenizers (GPT-2): every byte of a text is written as a printable character.
#pragma once

#include <array>
#include <string>

namespace mh {

/// The printable character, in UTF-8, by which GPT-2 writes each byte.
const std::array<std::string, 256>& byte_level_alphabet();
/// The byte that a character of this alphabet stands for; -1 for other characters.
int byte_of_character(char32_t character);

}  // namespace mh
