#include "multihead/train/translator/training_options.h"

namespace mh {

RunOptions run_options(const TranslatorSettings& s) {
  return {.updates = s.updates,
          .epochs = s.epochs,
          .patience = s.patience,
          .metric = s.metric,
          .validate_every = s.validate_every,
          .save_every = s.save_every,
          .log_every = s.log_every,
          .keep = s.keep,
          .average = s.average,
          .average_of = s.average_of};
}

TranslationOptions translation_options(const TranslatorSettings& s) {
  return {.batches = {.max_tokens = *s.batch_tokens, .count = s.batch_count, .seed = s.seed},
          .label_smoothing = *s.label_smoothing,
          .disagreement = s.disagreement,
          .disagreement_weight = s.disagreement_weight,
          .head_gates = s.head_gates};
}

TrainerOptions trainer_options(const TranslatorSettings& s, ProcessGroup& group) {
  return {.accumulate = s.accumulate,
          .adam = {.beta1 = s.adam_beta1,
                   .beta2 = s.adam_beta2,
                   .epsilon = s.adam_epsilon,
                   .weight_decay = s.weight_decay},
          .schedule = {.peak = *s.learning_rate, .warmup = *s.warmup, .decay = s.schedule, .end = s.updates},
          .clip_norm = s.clip_norm,
          .seed = s.seed,
          .group = &group,
          .reproducible = s.reproducible,
          .shard_moments = s.shard_optimiser};
}

}  // namespace mh
