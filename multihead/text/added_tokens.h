// Finds added tokens: tokens that are matched in the text itself, such as "</s>" written in a sentence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/piece_index.h"
#include "multihead/text/pre_tokenizer.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// An added token, and what to look for: the normalised content, for tokens matched after normalisation.
struct SoughtToken {
  AddedToken token;
  std::string content;
};

/// A set of added tokens to look for; at each place the longest one is taken, of equals the first.
class AddedTokenFinder {
 public:
  explicit AddedTokenFinder(std::vector<SoughtToken> tokens);
  /// Cuts the text into found tokens and the text between them; leaves out empty pieces. Takes time in
  /// proportion to the length of the text times that of the longest token.
  std::vector<Piece> find(std::string_view text) const;

 private:
  std::vector<SoughtToken> tokens_;
  PieceIndex index_;
};

}  // namespace mh
