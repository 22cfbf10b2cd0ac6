// Scores given translations: the probability of each of their tokens, in one pass with teacher forcing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct ScoreOptions {
  TextLanguages languages = {};     // of score_text(), which makes tokens of them
  int64_t max_batch_tokens = 4096;  // of the source plus the target
  Sites* sites = nullptr;           // whose sequences are the pairs
  std::function<void(int64_t sentences_done)> progress = nullptr;  // called after each batch
};

/// Returns for each pair the natural logarithm of the probability of every target token and, last, of the
/// end token. Sources have their end token; targets have none. Throws UsageError on unequal numbers of
/// sources and targets, an empty source or ids outside of the vocabulary, ShapeError on a sequence longer
/// than max_positions, Error when probabilities are not finite.
std::vector<std::vector<float>> score(const LanguageModel& model,
                                      std::span<const std::vector<int32_t>> sources,
                                      std::span<const std::vector<int32_t>> targets,
                                      const ScoreOptions& options = {});

}  // namespace mh
