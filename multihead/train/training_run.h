// Runs a training from its present state to its end: updates, metrics, validation, checkpoints, early
// stopping, and stopping on request.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/train/checkpoint_store.h"
#include "multihead/train/metrics_log.h"
#include "multihead/train/trainer.h"

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

struct RunHooks {
  std::function<Validation()> validate;                   // of the present model; empty: no validation
  std::function<void(const TrainingProgress&)> progress;  // may be empty
  std::function<void(const Validation&)> validated;       // may be empty
  std::function<bool()> stop;                             // true: save and throw Interrupted; may be empty
};

enum class RunEnd { kUpdates, kEpochs, kPatience };
/// Whether the run is over, and why.
std::optional<RunEnd> ended(const TrainingState& state, const RunOptions& options);
std::string run_end_text(RunEnd end);

/// Trains until the end; then the last state is saved and validated. Throws Interrupted after saving when
/// asked to stop, and Error when the loss is no number, naming the update, its sentences and the last good
/// checkpoint; UsageError unless validate_every, save_every and log_every are at least 1.
RunEnd run_training(Trainer& trainer, CheckpointStore& store, MetricsLog& metrics, const RunOptions& options,
                    const RunHooks& hooks);

/// Returns the updates whose checkpoints make the final model: the last `average` regular ones, or the
/// best. A checkpoint that was written because the run was stopped is not regular, so stopping does not
/// change the result.
std::vector<int64_t> chosen_checkpoints(const TrainingState& state, const RunOptions& options,
                                        std::span<const int64_t> available);

}  // namespace mh
