// Which two pieces of a vocabulary make a third: what SentencePiece's byte-pair encoding merges. Its models
// have a score for each piece in place of a list of merges.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Calls take(left, right, whole) with the numbers of pieces for all places where a piece can be cut into two
/// others: piece by piece, each from its first place on. O(n log n) for n bytes of pieces.
void for_each_pair(const std::vector<std::pair<std::string, int32_t>>& pieces,
                   const std::function<void(int32_t left, int32_t right, int32_t whole)>& take);

/// Which of the merges that make one piece comes first.
enum class FirstMerge { kOfLongestLeft, kOfShortestLeft };

/// Returns the merges that byte-pair encoding by rank (TokenModel::Kind::kBpe, tokenizer.json) needs to do what
/// SentencePiece's does by scores: the better the score of the piece that is made, the earlier; `first` says which
/// of equals (both orders are those of transformers, for GGUF files and for tokenizer.model). Throws FormatError,
/// one line without a file's name, when they have more than 16 times the bytes of the pieces and a MiB: those of
/// real vocabularies have some 3 times as many.
std::vector<std::pair<std::string, std::string>> merges_of_scores(
    const std::vector<ScoredPiece>& pieces, FirstMerge first = FirstMerge::kOfLongestLeft);

}  // namespace mh
