// One update after another: forward, backward, clip, Adam. When to validate, save and stop is
// training_run.h's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/autograd/gradient_buffer.h"
#include "multihead/train/adam.h"
#include "multihead/train/objective.h"
#include "multihead/train/schedule.h"
#include "multihead/train/training_state.h"

namespace mh {

/// What one update did.
struct UpdateReport : LossSums {
  bool finite = true;        // false: the loss or a gradient was not a number; the parameters were left alone
  double gradient_norm = 0;  // of the mean over target tokens, before clipping
  double learning_rate = 0;
};

struct TrainerOptions {
  int32_t accumulate =
      1;  // batches whose gradients make one update; the last update of an epoch may have fewer
  AdamOptions adam = {};
  Schedule schedule = {};
  double clip_norm = 0;  // 0: never clipped
  uint64_t seed = 1;     // of dropout
  /// Called by each update between the backward pass and the norm, so that processes with a copy of the model
  /// each, and batches of their own, may learn together; empty: nothing is. It gets the gradient of the mean
  /// over this process's target tokens and the sums of its batches, and must leave in all processes the same
  /// bits:
  ///   gradients   the mean over everybody's target tokens: sum over processes p of
  ///               all()_p * target_tokens_p / sum of target_tokens. Those of a parameter that only others
  ///               reached must be marked, mark_reached(), or Adam passes it over
  ///   report      its LossSums summed over processes; the rest is filled afterwards
  /// All processes must make equally many updates an epoch.
  std::function<void(GradientBuffer& gradients, UpdateReport& report)> sum_over_processes = nullptr;
};

class Trainer {
 public:
  /// REQUIRES: the objective outlives this, and its parameters have no other trainer meanwhile. Throws
  /// UsageError on options that cannot be.
  Trainer(Objective& objective, const TrainerOptions& options);

  /// The next update. The loss is the mean over all target tokens of the update, however many batches they
  /// lie in. Throws UsageError when the objective has no batch where this stands.
  UpdateReport update();

  /// Gives the memory of forward and backward back, before something else wants as much; the next update
  /// takes it again.
  void release_memory() {
    tape_.reset();
    objective_.release_memory();
  }

  /// Bytes of values that the last batch kept for its backward pass.
  size_t activation_bytes() { return tape_ ? tape_->arena().in_use() : 0; }

  /// Where it stands; put there what a checkpoint holds to go on from it (and Adam's moments), when there are
  /// no problems_with() it.
  TrainingState& state() { return state_; }
  /// All in which a state contradicts what there is to learn from, one clause each; empty when this could have
  /// got there.
  std::vector<std::string> problems_with(const TrainingState& state) const;
  Adam& adam() { return adam_; }
  const GradientBuffer& gradients() const { return gradients_; }
  const Objective& objective() const { return objective_; }
  int32_t accumulate() const { return options_.accumulate; }
  /// Batches of the present epoch.
  int64_t batches_in_epoch();
  /// Line numbers of what the next update trains on.
  std::vector<int64_t> lines_of_next_update();

 private:
  struct Range {
    size_t begin, end;
  };
  Range next_batches();

  Objective& objective_;
  TrainerOptions options_;
  Adam adam_;
  GradientBuffer gradients_;
  TrainingState state_;
  std::optional<Tape> tape_;
  std::vector<std::vector<int64_t>> plan_;
  int64_t planned_epoch_ = -1;
};

}  // namespace mh
