// Learns byte-pair encoding (Sennrich et al. 2016): which pairs of symbols to merge, most frequent first.
// (bpe.h applies the merges.)
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mh {

/// A distinct word: its symbols (-1: a character outside the alphabet, which never merges) and how often it
/// occurs.
struct CountedWord {
  std::vector<int32_t> symbols;
  int64_t count;
};

/// Merges the most frequent pair (of equals the one with the smaller ids) again and again, until the
/// vocabulary has `vocabulary_size` tokens or no pair occurs `least_count` times. New tokens are appended
/// to `tokens`; no merge makes one of the first `reserved` tokens. Returns the merges in order. Only the
/// counts of words that hold the merged pair are updated, so the cost of a merge is that of these words.
std::vector<std::pair<int32_t, int32_t>> learn_merges(std::vector<CountedWord> words,
                                                      std::vector<std::string>& tokens, int32_t reserved,
                                                      int32_t vocabulary_size, int64_t least_count);

}  // namespace mh
