// The settings of a training as the options of those who work with them.
#pragma once

#include "multihead/train/run_options.h"
#include "multihead/train/trainer.h"
#include "multihead/train/translation_objective.h"
#include "multihead/train/translator/translator_settings.h"

namespace mh {

/// REQUIRES: settings are resolved; the group outlives the trainer.
RunOptions run_options(const TranslatorSettings& s);
TranslationOptions translation_options(const TranslatorSettings& s);
TrainerOptions trainer_options(const TranslatorSettings& s, ProcessGroup& group);

}  // namespace mh
