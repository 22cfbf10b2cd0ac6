// A model and what trains it, as the settings of a run describe them.
#pragma once

#include <cstddef>

#include "lab/studies/run_log.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/train/trainer.h"
#include "multihead/train/training_corpus.h"
#include "multihead/train/translation_objective.h"

namespace mh {

class ArmTraining {
 public:
  /// The model at its start. REQUIRES: the text outlives this.
  ArmTraining(const RunSettings& settings, const EncoderDecoderConfig& model, const TrainingCorpus& text);

  EncoderDecoder& model() { return model_; }
  /// The next update.
  UpdateReport update();
  /// CPU time of the calling threads in all updates so far: what others do on the machine hardly counts.
  double seconds() const { return seconds_; }
  /// What the last batch kept for its backward pass.
  size_t activation_bytes() { return trainer_.activation_bytes(); }
  void release_memory() { trainer_.release_memory(); }

 private:
  EncoderDecoder model_;
  TranslationObjective objective_;
  Trainer trainer_;
  double seconds_ = 0;
};

/// Of all heads of all attentions: whether each has the bits of its attention's first head.
bool heads_are_equal(EncoderDecoder& model);

}  // namespace mh
