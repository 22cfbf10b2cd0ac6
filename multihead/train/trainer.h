// Trainer: makes one update after another. An update runs `accumulate` batches forward and backward, clips
// the gradient, and lets Adam change the parameters:
//
//   g = gradient of the mean loss over all target tokens of the update
//   g = g * min(1, clip_norm / |g|)                   unless clip_norm is 0
//   Adam changes the parameters with g and the learning rate of the schedule
//
// Several ranks share the batches of an update (gradient_exchange.h); the mean is over all of them.
//
// What is trained is the objective's (objective.h); training_run.h decides when to validate, save and stop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/gradient_buffer.h"
#include "multihead/distributed/process_group.h"
#include "multihead/train/adam.h"
#include "multihead/train/gradient_exchange.h"
#include "multihead/train/objective.h"
#include "multihead/train/schedule.h"
#include "multihead/train/training_state.h"

namespace mh {

/// The report of one update.
struct UpdateReport : LossSums {
  bool finite = true;        // false: loss or gradient was not finite; the parameters are unchanged
  double gradient_norm = 0;  // of the mean loss over target tokens, before clipping
  double learning_rate = 0;
  RankTimes ranks;  // of several
};

struct TrainerOptions {
  /// How many batches make one update; the last update of an epoch may have fewer.
  int32_t accumulate = 1;
  AdamOptions adam = {};
  Schedule schedule = {};
  double clip_norm = 0;  // 0: never clipped
  uint64_t seed = 1;     // of dropout
  /// The processes that train together; null: this one alone. Every rank has the same objective and plan, and
  /// makes its share of each update; all get the same parameters, bit for bit. REQUIRES: it outlives the trainer.
  ProcessGroup* group = nullptr;
  /// The same bits on 1, 2 and 4 ranks (gradient_exchange.h); other bits, and slower, than without.
  bool reproducible = false;
  /// Each rank keeps the moments of its share of the parameters alone, updates these, and gets the others.
  bool shard_moments = false;
};

class Trainer {
 public:
  /// REQUIRES: the objective outlives this, and its parameters have no other trainer meanwhile. Throws
  /// UsageError on invalid options.
  Trainer(Objective& objective, const TrainerOptions& options);

  /// Makes the next update. The loss is the mean over all target tokens of its batches together. Throws
  /// UsageError when the objective's plan has no batch at the present state. Throws Interrupted when a StopScope ends it:
  /// parameters, moments and state are as before, to be saved; gradients are not, so REQUIRES: no update follows.
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
  ProcessGroup& group() const { return group_; }
  /// Gives every rank the parameters, moments and state of rank 0. Every rank calls these three; with one they
  /// do nothing. To resume, rank 0 calls adam().hold_all() and fills all moments before.
  void start_as_first_rank();
  /// The parameters alone, after rank 0 changed them.
  void parameters_of_first_rank();
  /// Gives rank 0 the moments of all ranks, until adam().hold_own().
  void collect_moments();
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
  /// The examples of a batch that are this shard's.
  std::vector<int64_t> share_of(std::span<const int64_t> batch, size_t shard) const;
  void give_updated_parameters();

  Objective& objective_;
  TrainerOptions options_;
  OneProcess alone_;
  ProcessGroup& group_;
  Adam adam_;
  GradientBuffer gradients_;
  GradientExchange exchange_;
  TrainingState state_;
  std::optional<Tape> tape_;
  std::vector<std::vector<int64_t>> plan_;
  int64_t planned_epoch_ = -1;
};

}  // namespace mh
