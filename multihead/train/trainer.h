// One update after another: forward, backward, clip, Adam. When to validate, save and stop is
// training_run.h's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "multihead/models/encoder_decoder.h"
#include "multihead/train/adam.h"
#include "multihead/train/schedule.h"
#include "multihead/train/training_corpus.h"
#include "multihead/train/training_state.h"

namespace mh {

struct TrainerOptions {
  BatchOptions batches;
  int32_t accumulate =
      1;  // batches whose gradients make one update; the last update of an epoch may have fewer
  AdamOptions adam;
  Schedule schedule;
  double clip_norm = 0;  // 0: never clipped
  float label_smoothing = 0;
  Disagreement disagreement = Disagreement::kNone;  // of heads, and its weight in the loss
  float disagreement_weight = 1;
  uint64_t seed = 1;  // of dropout
};

/// What one update did.
struct UpdateReport {
  bool finite = true;        // false: the loss or a gradient was not a number; the parameters were left alone
  double smoothed_loss = 0;  // sums over target tokens
  double negative_log_likelihood = 0;
  double alike_heads = 0;  // as in EncoderDecoder::Loss
  int64_t target_tokens = 0;
  int64_t source_tokens = 0;
  int64_t sentences = 0;
  double gradient_norm = 0;  // of the mean over target tokens, before clipping
  double learning_rate = 0;
};

class Trainer {
 public:
  /// REQUIRES: model and corpus outlive this; the corpus is not empty.
  Trainer(EncoderDecoder& model, const TrainingCorpus& corpus, const TrainerOptions& options);

  /// The next update. The loss is the mean over all target tokens of the update, however many batches they
  /// lie in.
  UpdateReport update();

  /// Gives the memory of forward and backward back, before something else wants as much; the next update
  /// takes it again.
  void release_memory() {
    tape_.reset();
    scratch_ = {};
  }

  /// Bytes of values that the last batch kept for its backward pass.
  size_t activation_bytes() { return tape_ ? tape_->arena().in_use() : 0; }

  /// Where it stands; put there what a checkpoint holds to go on from it (and Adam's moments).
  TrainingState& state() { return state_; }
  Adam& adam() { return adam_; }
  EncoderDecoder& model() { return model_; }
  int32_t accumulate() const { return options_.accumulate; }
  Disagreement disagreement() const { return options_.disagreement; }
  /// Batches of the present epoch.
  int64_t batches_in_epoch();
  /// Line numbers of what the next update trains on.
  std::vector<int64_t> lines_of_next_update();

 private:
  struct Range {
    size_t begin, end;
  };
  Range next_batches();

  EncoderDecoder& model_;
  const TrainingCorpus& corpus_;
  TrainerOptions options_;
  Adam adam_;
  TrainingState state_;
  std::optional<Tape> tape_;
  VocabularyScratch scratch_;
  Batch source_;
  TeacherForced target_;
  std::vector<std::vector<int64_t>> plan_;
  int64_t planned_epoch_ = -1;
};

}  // namespace mh
