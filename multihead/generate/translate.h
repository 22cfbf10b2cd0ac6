// Translating any number of sentences: batches of like length, results in the order of the input.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "multihead/generate/align.h"
#include "multihead/generate/search.h"
#include "multihead/models/transformer.h"
#include "multihead/nn/context.h"

namespace mh {

struct TranslateOptions {
  SearchOptions search = {};
  int64_t max_batch_tokens = 2048;               // source tokens of one batch
  std::optional<AlignOptions> align = std::nullopt;// fills Hypothesis::alignment
  const Interventions* interventions = nullptr;  // also seen by the alignment
  std::function<void(int64_t sentences_done)> progress = nullptr;  // called after each batch
};

/// The hypotheses of each source, n_best or fewer, best first. A source is what the encoder reads, its end token
/// included; a source of no tokens has no hypotheses. prefixes: empty, or the beginning of each translation.
/// Throws UsageError on options, ids or prefixes that cannot be, ShapeError on a source longer than max_positions.
std::vector<std::vector<Hypothesis>> translate(Transformer& model, std::span<const std::vector<int32_t>> sources,
                                               const TranslateOptions& options = {},
                                               std::span<const std::vector<int32_t>> prefixes = {});

}  // namespace mh
