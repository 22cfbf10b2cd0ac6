#include "multihead/text/added_tokens.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "multihead/text/unicode.h"

namespace mh {
namespace {

/// Where the character that ends at `end` starts.
size_t previous_start(std::string_view text, size_t end) {
  do {
    --end;
  } while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}
bool word_before(std::string_view text, size_t end) {
  if (end == 0) return false;
  size_t at = previous_start(text, end);
  return is_word(next_character(text, at));
}
bool word_behind(std::string_view text, size_t begin) {
  return begin < text.size() && is_word(next_character(text, begin));
}

/// Contents with the numbers of their tokens. Of equal ones the first counts.
std::vector<std::pair<std::string, int32_t>> contents_of(const std::vector<SoughtToken>& tokens) {
  std::unordered_map<std::string_view, int32_t> first;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].content.empty()) first.emplace(tokens[i].content, static_cast<int32_t>(i));
  }
  return {first.begin(), first.end()};
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<SoughtToken> tokens)
    : tokens_(std::move(tokens)), index_(contents_of(tokens_)) {}

std::vector<Piece> AddedTokenFinder::find(std::string_view text) const {
  std::vector<Piece> pieces;
  size_t done = 0;  // what lies before is in a piece already
  const auto add_text = [&](size_t end) {
    if (done < end) pieces.push_back({done, end});
  };
  for (size_t at = 0; !tokens_.empty() && at < text.size();) {
    int32_t found = -1;
    PieceIndex::Walk walk = index_.start();
    for (size_t next = at; next < text.size() && !walk.over();) {
      walk = index_.next(walk, text[next++]);
      if (const int32_t token = index_.id(walk); token >= 0) found = token;
    }
    if (found < 0) {
      ++at;
      continue;
    }
    const auto& [token, content] = tokens_[static_cast<size_t>(found)];
    size_t begin = at;
    size_t end = at + content.size();
    at = end;
    if (token.single_word && (word_before(text, begin) || word_behind(text, end))) continue;
    while (token.lstrip && begin > done) {
      const size_t before = previous_start(text, begin);
      size_t next = before;
      if (!is_whitespace(next_character(text, next))) break;
      begin = before;
    }
    while (token.rstrip && end < text.size()) {
      size_t next = end;
      if (!is_whitespace(next_character(text, next))) break;
      end = next;
    }
    add_text(begin);
    pieces.push_back({begin, end, token.id});
    done = at = end;
  }
  add_text(text.size());
  return pieces;
}

}  // namespace mh
