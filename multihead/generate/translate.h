// Translating any number of sentences: batches of like length, results in the order of the input.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "multihead/generate/align.h"
#include "multihead/generate/search.h"
#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"

namespace mh {

struct TranslateOptions {
  SearchOptions search = {};
  int64_t max_batch_tokens = 2048;  // source tokens of one batch, at most; results do not depend on it
  std::optional<AlignOptions> align = std::nullopt;  // fills Hypothesis::alignment
  const Interventions* interventions = nullptr;      // also seen by the alignment
  std::function<void(int64_t sentences_done)> progress =
      nullptr;  // called after each batch, by one thread at a time
};

/// Translates call after call and keeps its memory between them. Many batches are shared out to the threads
/// of the pool, one batch a thread; the threads work together on few. Not for use by two threads at once.
class Translator {
 public:
  /// `model` must outlive this.
  explicit Translator(const LanguageModel& model);
  ~Translator();
  Translator(const Translator&) = delete;
  Translator& operator=(const Translator&) = delete;

  /// The hypotheses of each source, n_best or fewer, best first. A source is what the encoder reads, its end
  /// token included; a source of no tokens has no hypotheses. prefixes: empty, or the beginning of each
  /// translation. Throws UsageError on options, ids or prefixes that cannot be, ShapeError on a source longer
  /// than max_positions.
  std::vector<std::vector<Hypothesis>> translate(std::span<const std::vector<int32_t>> sources,
                                                 const TranslateOptions& options = {},
                                                 std::span<const std::vector<int32_t>> prefixes = {});

 private:
  struct Worker;
  Worker& worker(int number);

  const LanguageModel& model_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// The same for one call.
std::vector<std::vector<Hypothesis>> translate(const LanguageModel& model,
                                               std::span<const std::vector<int32_t>> sources,
                                               const TranslateOptions& options = {},
                                               std::span<const std::vector<int32_t>> prefixes = {});

}  // namespace mh
