// train_translator() by several processes, each of which calls this with the same settings.
#pragma once

#include "multihead/distributed/process_group.h"
#include "multihead/train/translator/train_translator.h"

namespace mh {

/// Rank 0 alone writes, remarks and reports; the model folder need be there only. Throws on every rank what went wrong
/// on any of them, and LostRank when one has ended or does not answer.
TrainingResult train_translator(const TranslatorSettings& settings, const TrainingWatcher& watcher,
                                ProcessGroup& group);

}  // namespace mh
