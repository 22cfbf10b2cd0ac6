// What a training run is told, and what it tells whoever watches it: plain values, for training_run.h and for those who
// start trainings (train/translator/train_translator.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/train/training_state.h"

namespace mh {

enum class AverageOf { kLast, kBest };

struct RunOptions {
  int64_t updates = 0;   // 0: no limit
  int64_t epochs = 0;    // 0: no limit
  int32_t patience = 0;  // the run stops after this many validations without a better one; 0: never
  Metric metric = Metric::kLoss;
  int64_t validate_every = 500;  // updates
  int64_t save_every = 500;
  int64_t log_every = 50;
  int32_t keep = 2;  // newest checkpoints kept, besides those that averaging needs
  int32_t average = 1;
  AverageOf average_of = AverageOf::kLast;
};

/// What a watcher sees after every update.
struct TrainingProgress {
  int64_t update = 0;
  int64_t updates = 0;                  // the last update of the run; 0: not known
  int64_t epoch = 0;                    // from 1
  double loss = 0;                      // of this update, per target token, with label smoothing
  double target_tokens_per_second = 0;  // over the last updates
  std::optional<double> seconds_left;
  const Validation* validation = nullptr;  // the latest
};

/// Why a run ended.
enum class RunEnd { kUpdates, kEpochs, kPatience };
/// The reason in words, e.g. "all updates are made".
std::string run_end_text(RunEnd end);

}  // namespace mh
