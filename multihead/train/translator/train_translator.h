// Trains a translator from two text files, a text and its translation: it learns the tokenizer, makes and
// trains the model, validates it by loss and by BLEU of a beam search, writes checkpoints, and writes the
// final model folder. A stopped run resumes from its newest checkpoint. `multihead train` and the demo call
// this.
//
//   TranslatorSettings settings{.train_source = "train.en", .train_target = "train.de", .model = "model"};
//   settings.updates = 2000;
//   train_translator(settings);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/train/run_options.h"
#include "multihead/train/translator/translator_settings.h"

namespace mh {

/// Functions that are called during training; each may be empty. The library itself prints nothing.
struct TrainingWatcher {
  /// Called with one line worth knowing, e.g. how many pairs were left out.
  std::function<void(const std::string&)> remark;
  std::function<void(const TrainingProgress&)> progress;  // after every update
  std::function<void(const Validation&)> validated;       // after every validation
  std::function<bool()>
      stop;  // returns true: save the last whole update and throw Interrupted; asked often (StopScope)
};

struct TrainingResult {
  bool was_finished = false;  // the run had already finished
  RunEnd end = RunEnd::kUpdates;
  int64_t updates = 0;
  std::vector<int64_t> averaged;    // the updates whose checkpoints were averaged into the final model
  std::optional<Validation> final;  // the scores of the final model
  int64_t left_out = 0;             // training pairs that are longer than max_length
};

/// Trains, or resumes from the newest checkpoint in settings.model; the result has the same bits as that of
/// a run that was never interrupted. The folder keeps the settings (kept_settings()). Throws UsageError
/// listing the differences when settings or texts are not those that the run was started with, Interrupted
/// when asked to stop, after saving, and Error, FileError or FormatError on texts and files that cannot be
/// used.
TrainingResult train_translator(const TranslatorSettings& settings, const TrainingWatcher& watcher = {});

}  // namespace mh
