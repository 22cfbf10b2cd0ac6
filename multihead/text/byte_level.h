// Byte-level tokenizers (GPT-2): every byte of a text is written as a printable character.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace mh {

/// The printable character, in UTF-8, by which GPT-2 writes each byte.
const std::array<std::string, 256>& byte_level_alphabet();
/// The byte that a character of this alphabet stands for; -1 for other characters.
int byte_of_character(char32_t character);
/// The bytes that a piece in this alphabet stands for. None when a character is not of the alphabet: then the
/// piece is an added token, which stands for itself.
std::optional<std::string> bytes_of_piece(std::string_view piece);
/// What people read in place of a piece: its text, with a space as U+2581 (as in SentencePiece's pieces, and
/// visible at the beginning of a cell). Bytes that are no whole character here, and those of characters that
/// cannot stand in a line, are written as <0x0A>.
std::string shown_piece(std::string_view piece);

}  // namespace mh
