// Finds added tokens: tokens that are matched in the text itself, such as "</s>" written in a sentence.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/pre_tokenizer.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// A set of added tokens to look for; at each place the longest one is taken.
class AddedTokenFinder {
 public:
  /// `content` is what to look for (the normalised content, for tokens matched after normalisation).
  void add(AddedToken token, std::string content);
  bool empty() const { return tokens_.empty(); }
  /// Cuts the text into found tokens and the text between them; leaves out empty pieces.
  std::vector<Piece> find(std::string_view text) const;

 private:
  struct Entry {
    AddedToken token;
    std::string content;
  };
  std::vector<Entry> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // longest first
};

}  // namespace mh
