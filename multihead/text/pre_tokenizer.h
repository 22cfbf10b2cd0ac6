// Pre-tokenizers: cut a normalised text into words. The model of the tokenizer (BPE or word level) then
// splits each word into tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/aligned_text.h"

namespace mh {

/// A word, or an added token that was found already: bytes [begin, end) of Pieces::text.
struct Piece {
  size_t begin;
  size_t end;
  int32_t token = -1;  ///< id of the added token; -1: a word for the model
};
struct Pieces {
  AlignedText text;
  std::vector<Piece> pieces;
};

/// Applies the steps to the words. Added tokens stay as they are; empty words are removed.
void pre_tokenize(const std::vector<PreTokenizerStep>& steps, Pieces& pieces);

}  // namespace mh
