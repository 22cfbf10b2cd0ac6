// Cuts a text's tokens to the longest sequence that a model reads, as Hugging Face's truncation does: the text
// loses its end, and the special tokens that close it stay. long_lines.h says so; prompts lose their beginning
// (prompt_tokens.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

/// How many special tokens the tokenizer puts before and after a text: 1 and 1 for "[CLS] text [SEP]".
size_t opening_tokens(const Tokenizer& tokenizer);
size_t closing_tokens(const Tokenizer& tokenizer);

/// Cuts a list with an entry for each token to `longest`; the last `closing` stay (as far as there is room).
/// Returns whether it was longer.
template <class T>
bool cut_tokens(std::vector<T>& of_tokens, size_t longest, size_t closing) {
  if (of_tokens.size() <= longest) return false;
  closing = std::min(closing, longest);
  of_tokens.erase(of_tokens.begin() + static_cast<std::ptrdiff_t>(longest - closing),
                  of_tokens.end() - static_cast<std::ptrdiff_t>(closing));
  return true;
}

}  // namespace mh
