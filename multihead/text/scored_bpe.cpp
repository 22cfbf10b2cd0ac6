#include "multihead/text/scored_bpe.h"

#include <algorithm>
#include <functional>
#include <map>

#include "multihead/text/piece_pairs.h"
#include "multihead/text/unicode.h"

namespace mh {
namespace {

std::vector<std::pair<std::string, int32_t>> user_defined_pieces(const std::vector<ScoredPiece>& pieces) {
  std::vector<std::pair<std::string, int32_t>> list;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].user_defined) list.emplace_back(pieces[i].text, static_cast<int32_t>(i));
  }
  return list;
}

}  // namespace

// Numbers in merges_: a piece by its index, then each character that is no piece but part of one. Symbols
// have two more kinds, which no merge knows: characters of no piece (-1) and user-defined pieces (-2 -
// index).
ScoredBpe::ScoredBpe(const TokenModel& model)
    : piece_count_(static_cast<int32_t>(model.pieces.size())),
      user_defined_(user_defined_pieces(model.pieces)) {
  std::unordered_map<std::string_view, int32_t> numbers;
  std::map<double, int32_t, std::greater<>> ranks;
  for (int32_t i = 0; i < piece_count_; ++i) {
    numbers.emplace(model.pieces[i].text, i);
    ranks.emplace(model.pieces[i].score, 0);
  }
  int32_t next_rank = 0;
  for (auto& [score, rank] : ranks) rank = next_rank++;
  std::vector<std::pair<std::string, int32_t>> pieces;
  pieces.reserve(model.pieces.size());
  for (const auto& [text, number] : numbers) pieces.emplace_back(text, number);
  int32_t next_number = piece_count_;
  for (const ScoredPiece& piece : model.pieces) {
    const std::string_view text = piece.text;
    for (size_t at = 0; at < text.size(); at += utf8_length(text[at])) {
      const std::string_view character = text.substr(at, utf8_length(text[at]));
      const auto [number, is_new] = numbers.emplace(character, next_number);
      if (is_new) pieces.emplace_back(character, next_number++);
      characters_.emplace(character, number->second);
    }
  }
  for_each_pair(pieces, [&](int32_t left, int32_t right, int32_t whole) {
    merges_.add(left, right, {ranks.at(model.pieces[static_cast<size_t>(whole)].score), whole});
  });
}

std::vector<ScoredPart> ScoredBpe::parts(std::string_view text) const {
  std::vector<Symbol> symbols;
  for (size_t begin = 0; begin < text.size();) {
    Symbol longest = {-1, static_cast<uint32_t>(utf8_length(text[begin]))};
    if (const auto found = characters_.find(std::string(text.substr(begin, longest.length)));
        found != characters_.end()) {
      longest.id = found->second;
    }
    PieceIndex::Walk walk = user_defined_.start();
    for (size_t at = begin; at < text.size() && !walk.over();) {
      walk = user_defined_.next(walk, text[at++]);
      if (const int32_t piece = user_defined_.id(walk); piece >= 0) {
        longest = {-2 - piece, static_cast<uint32_t>(at - begin)};
      }
    }
    symbols.push_back(longest);
    begin += longest.length;
  }
  merges_.merge_all(symbols);
  std::vector<ScoredPart> parts;
  for (const Symbol& symbol : symbols) {
    const int32_t piece = symbol.id <= -2 ? -2 - symbol.id : symbol.id < piece_count_ ? symbol.id : -1;
    parts.push_back({piece, symbol.length});
  }
  return parts;
}

}  // namespace mh
