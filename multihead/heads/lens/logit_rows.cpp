#include "multihead/heads/lens/logit_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mh {
namespace {

/// The numbers of the largest logits, the largest first; of equal ones the smaller number.
std::vector<int32_t> largest(std::span<const float> logits, size_t count) {
  std::vector<int32_t> best;
  const auto of = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  for (int32_t id = 0; id < std::ssize(logits); ++id) {
    if (best.size() == count && !(of(id) > of(best.back()))) continue;
    if (best.size() == count) best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), id,
                                 [&](int32_t one, int32_t other) { return of(one) > of(other); }),
                id);
  }
  return best;
}

int64_t rank_of(std::span<const float> logits, int32_t id) {
  const auto at = logits.begin() + id;
  return 1 + std::count_if(logits.begin(), at, [&](float other) { return other >= *at; }) +
         std::count_if(at + 1, logits.end(), [&](float other) { return other > *at; });
}

/// score: of the number of a word or label.
template <class Score>
std::optional<LensRank> ranked_word(std::span<const float> logits, std::optional<int32_t> id,
                                    const Score& score) {
  if (!id) return std::nullopt;
  return LensRank{.rank = rank_of(logits, *id), .log_probability = score(*id)};
}

template <class Score>
void add_ranks(std::span<const float> logits, const RankedWords& ranked, const Score& score,
               LensReading& reading) {
  reading.answer = ranked_word(logits, ranked.answer, score);
  reading.actual = ranked_word(logits, ranked.actual, score);
  reading.predicted = ranked_word(logits, ranked.predicted, score);
}

/// exp(below), of float32, in which logits are known no better; twice as fast, and most of what these rows cost.
double share_of(float below) {
  return static_cast<double>(std::exp(below));
}

/// log(1 / (1 + exp(-z))), without the 0 that the quotient becomes.
double log_sigmoid(double z) {
  return z < 0 ? z - std::log1p(std::exp(z)) : -std::log1p(std::exp(-z));
}

}  // namespace

int32_t best_of(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

EndRow end_row(std::span<const float> logits) {
  EndRow end{.logits = logits, .probabilities = std::vector<double>(logits.size())};
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += end.probabilities[i] = share_of(logits[i] - most);
  for (double& p : end.probabilities) p /= sum;
  end.log_sum = static_cast<double>(most) + std::log(sum);
  return end;
}

LensReading read_row(std::span<const float> logits, const EndRow& end, int32_t words,
                     const RankedWords& ranked, const NameOfWord& name) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0, weighted = 0, moved = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float below = logits[i] - most;
    const double share = share_of(below);
    sum += share;
    weighted += share * static_cast<double>(below);
    moved += end.probabilities[i] * (static_cast<double>(end.logits[i]) - static_cast<double>(logits[i]));
  }
  const double log_sum = static_cast<double>(most) + std::log(sum);
  const auto log_p = [&](int32_t id) {
    return static_cast<double>(logits[static_cast<size_t>(id)]) - log_sum;
  };
  LensReading reading;
  for (const int32_t id : largest(logits, std::min(static_cast<size_t>(words), logits.size())))
    reading.best.push_back({.id = id, .token = name(id), .score = std::exp(log_p(id))});
  add_ranks(logits, ranked, log_p, reading);
  // Neither is below 0 but by rounding.
  reading.entropy = std::max(0.0, std::log(sum) - weighted / sum);
  reading.divergence = std::max(0.0, moved + log_sum - end.log_sum);
  return reading;
}

LensReading read_label_row(std::span<const float> logits, const EndRow& end, LabelScores scores,
                           const RankedWords& ranked, const NameOfWord& name) {
  if (scores == LabelScores::kSoftmax)
    return read_row(logits, end, static_cast<int32_t>(logits.size()), ranked, name);
  const bool sigmoid = scores == LabelScores::kSigmoid;
  const auto log_score = [&](int32_t id) {
    const auto z = static_cast<double>(logits[static_cast<size_t>(id)]);
    return sigmoid ? log_sigmoid(z) : z;
  };
  LensReading reading;
  for (const int32_t id : largest(logits, logits.size())) {
    const double score = log_score(id);
    reading.best.push_back({.id = id, .token = name(id), .score = sigmoid ? std::exp(score) : score});
  }
  add_ranks(logits, ranked, log_score, reading);
  return reading;
}

}  // namespace mh
