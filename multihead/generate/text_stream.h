// Token ids to text as they come: text appears when its bytes are complete.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

/// The pieces of text that add() and finish() return are the text of the tokens, which is how
/// Tokenizer::decode() writes them behind the tokens `before`. A character of several tokens appears with its
/// last one. Bytes that form no character become U+FFFD; up to three of these wait at the end, since the next
/// token may complete a character of them.
class TextStream {
 public:
  /// before: what the tokens follow, e.g. a prompt. `tokenizer` must outlive this.
  explicit TextStream(const Tokenizer& tokenizer, std::span<const int32_t> before = {});

  std::string add(int32_t token);
  /// What was waiting; no token may come after it.
  std::string finish();

 private:
  std::string next(bool is_last);

  const Tokenizer& tokenizer_;
  // Only these tokens are decoded again. What was decoded before them does not change any more, but the first
  // of them may be written differently than at the beginning of a text (e.g. without its space).
  std::vector<int32_t> tokens_;
  size_t fresh_ = 0;   // in tokens_: the first whose text did not appear as a whole
  std::string shown_;  // the text of tokens_ that appeared, or that came before
};

}  // namespace mh
