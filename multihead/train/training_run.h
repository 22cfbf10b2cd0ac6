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
#include "multihead/train/run_options.h"
#include "multihead/train/trainer.h"

namespace mh {

struct RunHooks {
  std::function<Validation()> validate;                   // of the present model, by all ranks; empty: none
  std::function<void(const TrainingProgress&)> progress;  // may be empty
  std::function<void(const Validation&)> validated;       // may be empty
  std::function<bool()> stop;                             // true: save and throw Interrupted; may be empty
};

/// Whether the run is over, and why.
std::optional<RunEnd> ended(const TrainingState& state, const RunOptions& options);

/// Trains until the end, then saves and validates the last state. Throws Interrupted after saving when asked to stop, by
/// the hook between updates or by a StopScope at any time: an update or a validation that it ends is made again by the
/// run that goes on. Throws Error when the loss is not finite, naming the update, its sentences and the last good
/// checkpoint; UsageError unless validate_every, save_every and log_every are at least 1.
/// With several ranks each calls this; `store` and `metrics` are rank 0's alone, null elsewhere. A rank that is asked
/// to stop stops all.
RunEnd run_training(Trainer& trainer, CheckpointStore* store, MetricsLog* metrics, const RunOptions& options,
                    const RunHooks& hooks);

/// Returns the updates whose checkpoints make the final model: the last `average` regular ones, or the
/// best. A checkpoint that was written because the run was stopped is not regular, so stopping does not
/// change the result.
std::vector<int64_t> chosen_checkpoints(const TrainingState& state, const RunOptions& options,
                                        std::span<const int64_t> available);

}  // namespace mh
