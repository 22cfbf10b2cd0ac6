// How probable given translations are: one teacher-forced pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"

namespace mh {

struct ScoreOptions {
  int64_t max_batch_tokens = 4096;  // of the source plus the target
  const Interventions* interventions = nullptr;
  std::function<void(int64_t sentences_done)> progress = nullptr;  // called after each batch
};

/// For each pair the natural-log probability of every token of the target and, last, of its end token.
/// Sources are what the encoder reads, end token included; targets are without their end token. Throws
/// UsageError on unequal counts, a source of no tokens or ids that cannot be, ShapeError on a sequence longer
/// than max_positions.
std::vector<std::vector<float>> score(const LanguageModel& model,
                                      std::span<const std::vector<int32_t>> sources,
                                      std::span<const std::vector<int32_t>> targets,
                                      const ScoreOptions& options = {});

}  // namespace mh
