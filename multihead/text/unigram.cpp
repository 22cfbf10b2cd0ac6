#include "multihead/text/unigram.h"

#include <algorithm>
#include <limits>

#include "multihead/text/unicode.h"

namespace mh {
namespace {

constexpr double kUnknownPenalty = 10;

std::vector<std::pair<std::string, int32_t>> numbered(const std::vector<ScoredPiece>& pieces) {
  std::vector<std::pair<std::string, int32_t>> list;
  list.reserve(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) list.emplace_back(pieces[i].text, static_cast<int32_t>(i));
  return list;
}

}  // namespace

Unigram::Unigram(const TokenModel& model)
    : index_(numbered(model.pieces)), single_precision_(model.sentencepiece) {
  double worst = std::numeric_limits<float>::max();
  double best = std::numeric_limits<float>::min();  // as there: above all logarithms of probabilities
  for (const ScoredPiece& piece : model.pieces) {
    if (piece.user_defined) continue;
    worst = std::min(worst, piece.score);
    best = std::max(best, piece.score);
  }
  for (const ScoredPiece& piece : model.pieces) {
    const double bonus =
        static_cast<float>(static_cast<float>(piece.text.size()) * static_cast<float>(best)) - 0.1;
    scores_.push_back(piece.user_defined ? bonus : piece.score);
  }
  unknown_score_ = single_precision_ ? static_cast<float>(worst) - static_cast<float>(kUnknownPenalty)
                                     : worst - kUnknownPenalty;
}

std::vector<ScoredPart> Unigram::best_parts(std::string_view text) const {
  return single_precision_ ? best_path<float>(text) : best_path<double>(text);
}

template <class Score>
std::vector<ScoredPart> Unigram::best_path(std::string_view text) const {
  struct End {  // of the best path to here
    Score score = 0;
    int32_t piece = -1;
    uint32_t length = 0;  // of its last part; 0: no path yet
  };
  std::vector<End> ends(text.size() + 1);
  const auto offer = [&](size_t begin, size_t end, int32_t piece, double score) {
    const Score sum = static_cast<Score>(score) + ends[begin].score;
    if (ends[end].length == 0 || sum > ends[end].score) {
      ends[end] = {sum, piece, static_cast<uint32_t>(end - begin)};
    }
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t next = begin + utf8_length(text[begin]);
    bool is_piece = false;  // the character alone
    PieceIndex::Walk walk = index_.start();
    for (size_t at = begin; at < text.size();) {
      walk = index_.next(walk, text[at++]);
      if (walk.over()) break;
      const int32_t piece = index_.id(walk);
      if (piece < 0) continue;
      offer(begin, at, piece, scores_[piece]);
      is_piece = is_piece || at == next;
    }
    if (!is_piece) offer(begin, next, -1, unknown_score_);
    begin = next;
  }
  std::vector<ScoredPart> parts;
  for (size_t end = text.size(); end > 0; end -= ends[end].length) {
    parts.push_back({ends[end].piece, ends[end].length});
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace mh
