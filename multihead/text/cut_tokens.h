// Cuts a text's tokens to the longest sequence that a model reads, as Hugging Face's truncation does: the text
// loses its end, or its start where the tokenizer says so (Tokenizer::cut_end()), and the special tokens around it
// stay. long_lines.h says so; prompts lose their beginning (prompt_tokens.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

/// How many special tokens the tokenizer puts before and after a text: 1 and 1 for "[CLS] text [SEP]".
size_t opening_tokens(const Tokenizer& tokenizer);
size_t closing_tokens(const Tokenizer& tokenizer);

/// Where a text is cut.
struct TextCut {
  size_t opening = 0, closing = 0;  // special tokens around it, which stay as far as there is room
  TextEnd end = TextEnd::kEnd;      // which end it loses
};

/// Cuts a list with an entry for each token to `longest`. Returns whether it was longer.
template <class T>
bool cut_tokens(std::vector<T>& of_tokens, size_t longest, const TextCut& cut) {
  if (of_tokens.size() <= longest) return false;
  const size_t excess = of_tokens.size() - longest;
  const size_t first =
      cut.end == TextEnd::kEnd ? longest - std::min(cut.closing, longest) : std::min(cut.opening, longest);
  const auto begin = of_tokens.begin() + static_cast<std::ptrdiff_t>(first);
  of_tokens.erase(begin, begin + static_cast<std::ptrdiff_t>(excess));
  return true;
}

}  // namespace mh
