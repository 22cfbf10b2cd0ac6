// WordPiece: BERT's model of words. It takes the longest piece of the vocabulary that the word starts with,
// then the longest piece that goes on with a prefix such as "##", until the word is used up.
#pragma once

#include <string_view>
#include <vector>

#include "multihead/text/bpe.h"
#include "multihead/text/piece_index.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

class WordPiece {
 public:
  explicit WordPiece(const TokenModel& model);

  /// Appends the pieces of the word. Returns false, with nothing appended, for a word that cannot be put
  /// together or that is longer than model.max_input_chars_per_word. Takes time in proportion to the word's
  /// length times that of the longest piece.
  bool split(std::string_view word, std::vector<Symbol>& pieces) const;

 private:
  PieceIndex index_;
  PieceIndex::Walk inside_word_;  // behind the prefix
  size_t most_characters_;
};

}  // namespace mh
