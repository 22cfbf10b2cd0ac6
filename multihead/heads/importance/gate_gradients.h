// The gradient of each text's score with respect to the gate of each head, by which its output is multiplied, at gates of 1
// (Michel et al. 2019, section 4.1): one pass forward and one back for all heads.
//
// Of ScoreKind::kVectors a text's score is the cosine of its vector to the vector of the next text of the corpus (the last one's
// to the first one's), which does not move: its cosine to the vector of the whole model would be at its maximum.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/importance/score_pass.h"
#include "multihead/heads/sites/site_gradients.h"

namespace mh {

struct GateGradients {
  std::vector<HeadName> heads;  // of the model, in order
  Tensor gradients;             // [texts, heads]
  double score = 0;             // the sum over texts
};

struct GateGradientOptions {
  int64_t max_batch_tokens = kMostGradientTokens;  // at most that many are read at once
  Sites* sites = nullptr;
  std::function<void(int64_t done)> progress =
      nullptr;  // called after each batch, with the texts that are done
};

/// Throws UsageError on one text alone of ScoreKind::kVectors, Error when a gradient is not finite.
GateGradients gate_gradients(const ScoredModel& model, const ScoredTexts& texts,
                             const GateGradientOptions& options = {});

}  // namespace mh
