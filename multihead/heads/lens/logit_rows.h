// What rows of logits say: their best words, ranks, entropies, and how far they are from what the model says in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/folders/labels.h"
#include "multihead/heads/lens/heads_lens.h"

namespace mh {

/// What the model says in the end: the distribution that others are compared with.
struct EndRow {
  std::span<const float> logits;
  std::vector<double> probabilities = {};
  double log_sum = 0;  // log sum exp(logits)
};
EndRow end_row(std::span<const float> logits);

/// Whose ranks are asked for.
struct RankedWords {
  std::optional<int32_t> answer = {}, actual = {}, predicted = {};
};

using NameOfWord = std::function<std::string(int32_t id)>;

/// Of words, and of labels that exclude each other: p = softmax(logits).
LensReading read_row(std::span<const float> logits, const EndRow& end, int32_t words,
                     const RankedWords& ranked, const NameOfWord& name);
/// Of a classifier's labels, all of them.
LensReading read_label_row(std::span<const float> logits, const EndRow& end, LabelScores scores,
                           const RankedWords& ranked, const NameOfWord& name);
/// The largest logit; of equal ones the smaller number.
int32_t best_of(std::span<const float> logits);

}  // namespace mh
