// Training a translator from two text files: tokenizer, model, trainer, validation by loss and by BLEU of a
// beam search, checkpoints, and the final model folder. This is what `multihead train` and the demo run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/recipes/translator_settings.h"
#include "multihead/train/training_run.h"

namespace mh {

/// What a watcher is told; each may be empty. The library itself prints nothing.
struct TrainingWatcher {
  std::function<void(const std::string&)>
      remark;  // one line worth knowing, e.g. how many pairs were left out
  std::function<void(const TrainingProgress&)> progress;  // after every update
  std::function<void(const Validation&)> validated;       // after every validation
  std::function<bool()> stop;                             // true: save what there is and throw Interrupted
};

struct TrainingResult {
  bool was_finished = false;  // there was nothing left to do
  RunEnd end = RunEnd::kUpdates;
  int64_t updates = 0;
  std::vector<int64_t> averaged;    // the updates whose mean is the final model
  std::optional<Validation> final;  // what the final model scores
  int64_t left_out = 0;             // training pairs beyond max_length
};

/// Trains, or goes on from the newest checkpoint in settings.model: the same settings give the same bits as a
/// run that was never interrupted. The folder keeps the settings (kept_settings()). Throws UsageError listing
/// the differences when the settings or the texts are not those the run was started with, Interrupted after saving, and Error, FileError, FormatError on
/// what cannot be used.
TrainingResult train_translator(const TranslatorSettings& settings, const TrainingWatcher& watcher = {});

}  // namespace mh
