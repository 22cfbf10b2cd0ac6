// Byte-pair encoding as SentencePiece trains and applies it: instead of ranked pairs there are pieces with
// scores, and of all neighbours that make a piece those are merged first whose piece has the best score.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "multihead/text/bpe.h"
#include "multihead/text/piece_index.h"
#include "multihead/text/tokenizer_parts.h"
#include "multihead/text/unigram.h"

namespace mh {

class ScoredBpe {
 public:
  explicit ScoredBpe(const TokenModel& model);

  /// Returns the parts in order; user-defined pieces are found first and never merged. O(n log n).
  std::vector<ScoredPart> parts(std::string_view text) const;

 private:
  int32_t piece_count_;
  std::unordered_map<std::string, int32_t>
      characters_;  // every character of a piece -> its number in merges_
  PieceIndex user_defined_;
  MergeTable merges_;
};

}  // namespace mh
