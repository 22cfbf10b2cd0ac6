#include "multihead/text/added_tokens.h"

#include <algorithm>

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

}  // namespace

void AddedTokenFinder::add(AddedToken token, std::string content) {
  if (content.empty()) return;
  auto& bucket = by_first_byte_[static_cast<unsigned char>(content[0])];
  const auto shorter = std::find_if(bucket.begin(), bucket.end(),
                                    [&](size_t i) { return tokens_[i].content.size() < content.size(); });
  bucket.insert(shorter, tokens_.size());
  tokens_.push_back({std::move(token), std::move(content)});
}

std::vector<Piece> AddedTokenFinder::find(std::string_view text) const {
  std::vector<Piece> pieces;
  size_t done = 0;  // what lies before is in a piece already
  const auto add_text = [&](size_t end) {
    if (done < end) pieces.push_back({done, end});
  };
  for (size_t at = 0; !tokens_.empty() && at < text.size();) {
    const auto& bucket = by_first_byte_[static_cast<unsigned char>(text[at])];
    const auto found = std::find_if(bucket.begin(), bucket.end(), [&](size_t i) {
      return text.substr(at).starts_with(tokens_[i].content);
    });
    if (found == bucket.end()) {
      ++at;
      continue;
    }
    const auto& [token, content] = tokens_[*found];
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
