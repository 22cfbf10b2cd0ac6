// What the fuzzers of tokenizers do with one that was accepted.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/utf8.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// Encodes and decodes, and ends the program when both ways of encoding differ or ids or offsets are out of
/// range.
inline void try_tokenizer(const Tokenizer& tokenizer) {
  const std::string text =
      "The cat's 12 </s> \u00dfe\u0301 \u6f22\u5b57\t\u2581\u2581 \U0001f469\u200d\U0001f680 \r\n[MASK]  "
      "\uff76\uff9e";
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  try {
    const Encoding encoding = tokenizer.encode(text);
    if (encoding.ids != tokenizer.encode_ids(text)) std::abort();
    if (encoding.ids.size() != encoding.tokens.size() || encoding.ids.size() != encoding.offsets.size())
      std::abort();
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      const auto [begin, end] = encoding.offsets[i];
      if (encoding.ids[i] < 0 || encoding.ids[i] >= tokenizer.size()) std::abort();
      if (begin < 0 || begin > end || end > characters) std::abort();
    }
    if (first_invalid_utf8(tokenizer.decode(encoding.ids, false)) != std::string::npos) std::abort();
  } catch (const FormatError&) {  // no unknown token
  }
}

}  // namespace mh
