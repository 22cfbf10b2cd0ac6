// Pre-tokenizers: cut a normalised text into the words that the model sees one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/aligned_text.h"

namespace mh {

/// A word, or an added token that is settled already: bytes [begin, end) of Pieces::text.
struct Piece {
  size_t begin;
  size_t end;
  int32_t token = -1;  ///< id of the added token; -1: a word for the model
};
struct Pieces {
  AlignedText text;
  std::vector<Piece> pieces;
};

/// Runs the steps over the words; settled tokens pass untouched; empty words vanish.
void pre_tokenize(const std::vector<PreTokenizerStep>& steps, Pieces& pieces);

/// GPT-2's words: contractions, " letters", " digits", " other", whitespace. The parts cover the text.
std::vector<Part> gpt2_words(std::string_view text);

/// GPT-2's printable stand-in for each byte, in UTF-8.
const std::array<std::string, 256>& byte_level_alphabet();
/// The byte a character stands for there, or -1.
int byte_of_character(char32_t character);

}  // namespace mh
