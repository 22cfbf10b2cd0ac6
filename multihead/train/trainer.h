// Trainer: makes one update after another. An update runs `accumulate` batches forward and backward, clips
// the gradient, and lets Adam change the parameters:
//
//   g = gradient of the mean loss over all target tokens of the update
//   g = g * min(1, clip_norm / |g|)                   unless clip_norm is 0
//   Adam changes the parameters with g and the learning rate of the schedule
//
// What is trained is the objective's (objective.h); training_run.h decides when to validate, save and stop.
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

/// The report of one update.
struct UpdateReport : LossSums {
  bool finite = true;        // false: loss or gradient was not finite; the parameters are unchanged
  double gradient_norm = 0;  // of the mean loss over target tokens, before clipping
  double learning_rate = 0;
};

struct TrainerOptions {
  /// How many batches make one update; the last update of an epoch may have fewer.
  int32_t accumulate = 1;
  AdamOptions adam = {};
  Schedule schedule = {};
  double clip_norm = 0;  // 0: never clipped
  uint64_t seed = 1;     // of dropout
  /// For distributed training; empty: not used. Several processes, each with a copy of the model and its
  /// own batches, can train together. Each update calls this function between the backward pass and the
  /// norm. It gets the gradient of the mean over this process's target tokens and the sums of its batches,
  /// and must leave the same bits in all processes:
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

  /// Makes the next update. The loss is the mean over all target tokens of its batches together. Throws
  /// UsageError when the objective's plan has no batch at the present state.
  UpdateReport update();

  /// Frees the memory of the forward and backward pass, e.g. before a validation; the next update allocates
  /// it again.
  void release_memory() {
    tape_.reset();
    objective_.release_memory();
  }

  /// The bytes of values that the last batch kept for its backward pass.
  size_t activation_bytes() { return tape_ ? tape_->arena().in_use() : 0; }

  /// Where the training stands. To resume, set it (and Adam's moments) to what a checkpoint holds, if there
  /// are no problems_with() it.
  TrainingState& state() { return state_; }
  /// All in which a state contradicts what there is to learn from, one clause each; empty when this could have
  /// got there.
  std::vector<std::string> problems_with(const TrainingState& state) const;
  Adam& adam() { return adam_; }
  const GradientBuffer& gradients() const { return gradients_; }
  const Objective& objective() const { return objective_; }
  int32_t accumulate() const { return options_.accumulate; }
  /// The number of batches of the present epoch.
  int64_t batches_in_epoch();
  /// The line numbers of the examples of the next update.
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
