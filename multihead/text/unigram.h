// Unigram (Kudo 2018): splits a text into the pieces whose scores, log-probabilities, have the greatest sum.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "multihead/text/piece_index.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// A part of a text that is one piece.
struct ScoredPart {
  int32_t piece;  ///< index into TokenModel::pieces; -1: a character that is no piece
  uint32_t length;
};

class Unigram {
 public:
  /// Reads model.pieces and model.sentencepiece.
  explicit Unigram(const TokenModel& model);

  /// Returns the best parts in order (Viterbi's algorithm). A character that is no piece costs 10 more than
  /// the worst piece; of equals the first found stays, which is the one whose last piece is longest. Takes
  /// time in proportion to the length of the text times that of the longest piece.
  std::vector<ScoredPart> best_parts(std::string_view text) const;

 private:
  template <class Score>
  std::vector<ScoredPart> best_path(std::string_view text) const;

  PieceIndex index_;
  std::vector<double> scores_;
  double unknown_score_;
  bool single_precision_;  // SentencePiece keeps sums as float, Hugging Face as double
};

}  // namespace mh
