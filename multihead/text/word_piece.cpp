#include "multihead/text/word_piece.h"

#include <algorithm>

namespace mh {

WordPiece::WordPiece(const TokenModel& model)
    : index_(model.vocabulary),
      inside_word_(index_.next(index_.start(), model.continuing_subword_prefix)),
      most_characters_(static_cast<size_t>(model.max_input_chars_per_word)) {}

bool WordPiece::split(std::string_view word, std::vector<Symbol>& pieces) const {
  const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  if (static_cast<size_t>(std::count_if(word.begin(), word.end(), starts_character)) > most_characters_) {
    return false;
  }
  const size_t before = pieces.size();
  for (size_t begin = 0; begin < word.size();) {
    Symbol longest = {-1, 0};
    PieceIndex::Walk walk = begin == 0 ? index_.start() : inside_word_;
    for (size_t at = begin; at < word.size() && !walk.over();) {
      walk = index_.next(walk, word[at++]);
      if (const int32_t id = index_.id(walk); id >= 0) longest = {id, static_cast<uint32_t>(at - begin)};
    }
    if (longest.length == 0) {
      pieces.resize(before);
      return false;
    }
    pieces.push_back(longest);
    begin += longest.length;
  }
  return true;
}

}  // namespace mh
