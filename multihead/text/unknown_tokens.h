// Counts and names what a tokenizer does not know.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

/// What a tokenizer had no token for, and replaced by its unknown token.
struct UnknownTokens {
  int64_t tokens = 0;                 // unknown tokens in all
  int64_t lines = 0;                  // lines that have one or more
  std::vector<std::string> examples;  // the first few, as they stand in the text; no two alike

  /// Counts those of one more line. Makes tokens of it once more, for their places in the text.
  void add(std::string_view line, const Tokenizer& tokenizer);
  /// Calls `remark`, which may be null, when there are any: "3 unknown tokens in 2 lines, e.g. '漢字', '☃'; the
  /// tokenizer does not know them", control characters escaped.
  void tell(const std::function<void(const std::string&)>& remark) const;
  /// The same without what follows the semicolon. Empty when there are none.
  std::string in_words() const;
};

}  // namespace mh
