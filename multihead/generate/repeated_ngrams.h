// Which tokens would repeat what a text already has: generation without repeated n-grams, Paulus et al. 2017.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace mh {

/// Appends to `out` every token that, after `tokens`, would complete a sequence of `n` tokens that occurs in `tokens`; a
/// token may come more than once. n = 1: all of `tokens`. As the NoRepeatNGramLogitsProcessor of transformers. REQUIRES: n > 0.
inline void tokens_that_repeat(std::span<const int32_t> tokens, int32_t n, std::vector<int32_t>& out) {
  const auto before = static_cast<size_t>(n) - 1;  // tokens of an n-gram but for its last one
  if (tokens.size() <= before) return;
  const auto end = tokens.last(before);
  for (size_t i = 0; i + before < tokens.size(); ++i) {
    const auto here = tokens.subspan(i, before);
    if (std::equal(here.begin(), here.end(), end.begin())) out.push_back(tokens[i + before]);
  }
}

}  // namespace mh
