// What verbs do that run a task on texts, or on two texts together: read the model and the texts, run it, and with --compare once
// with all heads as they are and once with changed ones.
#pragma once

#include <string>

#include "cli/common.h"
#include "cli/comparison.h"
#include "cli/error_line.h"
#include "cli/head_changes.h"
#include "cli/load_model.h"
#include "cli/setting_flags.h"
#include "cli/text_pairs.h"
#include "multihead/folders/model_folder.h"

namespace mh::cli {

/// Options: the task's, with `sites`, `pairs`, `from` and `remark`.
template <class Options>
struct PairVerbFlags {
  ModelFlags model;
  TextPairFlags texts;
  HeadChangeFlags changes;
  Options options;
  SettingFlags settings;
  bool json = false;
};

/// task(folder, texts, options) gives what is found; shown(folder, texts, found) and compared(folder, texts, both) make the output.
template <class Options, class Task, class Shown, class ComparedTexts>
void run_on_pairs(PairVerbFlags<Options>& flags, const Task& task, const Shown& shown,
                  const ComparedTexts& compared) {
  flags.settings.take(flags.options);
  ChangedHeads changed = changed_heads(flags.changes);
  flags.options.sites = changed.sites();
  const ModelFolder folder = load_model(flags.model);
  changed.check(folder);
  const TextPairs texts = read_text_pairs(flags.texts);
  flags.options.pairs = texts.seconds;
  flags.options.from = lines_from(flags.texts);
  flags.options.remark = [](const std::string& line) { remark(line); };
  const std::string& output = flags.texts.text.output;
  if (!flags.changes.compare)
    return write_text(output, shown(folder, texts, task(folder, texts.firsts, flags.options)));
  Options whole = flags.options, other = flags.options;
  whole.sites = nullptr;
  other.remark = nullptr;  // the same texts are cut
  using Found = decltype(task(folder, texts.firsts, whole));
  const Compared<Found> both{task(folder, texts.firsts, whole), task(folder, texts.firsts, other)};
  write_text(output, compared(folder, texts, both));
}

}  // namespace mh::cli
