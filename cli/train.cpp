// multihead train: learns to translate from two text files, or goes on where a run stopped.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/failure.h"
#include "cli/flag_names.h"
#include "cli/setting_flags.h"
#include "cli/shell_words.h"
#include "cli/stop_signals.h"
#include "cli/training_progress.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/file.h"
#include "multihead/base/thread_pool.h"
#include "multihead/distributed/agreement.h"
#include "multihead/distributed/join_processes.h"
#include "multihead/distributed/processors.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/io/config.h"
#include "multihead/io/setting_visitor.h"
#include "multihead/train/translator/train_by_ranks.h"
#include "multihead/train/translator/training_settings.h"

namespace mh::cli {
namespace {

// The settings in --config and --dump-config, where they are called as the flags are.
template <class V>
class CalledAsFlags : public SettingVisitor<CalledAsFlags<V>> {
 public:
  explicit CalledAsFlags(V& file) : file_(file) {}
  template <class T, class R>
  void setting(std::string_view name, T& value, const R& rule, const About&) {
    file_(flag_name("train", name), value, rule);
  }

 private:
  V& file_;
};

struct SettingsFile {
  TranslatorSettings settings;
  template <class V>
  void visit(V& v) {
    CalledAsFlags<V> named(v);
    settings.visit(named);
  }
};

std::string scores(const Validation& validation) {
  std::string text = fmt::format("loss {:.4f}, perplexity {:.3f}", validation.loss, validation.perplexity);
  if (validation.bleu) text += fmt::format(", BLEU {:.2f}", *validation.bleu);
  return text;
}

void run(const Verb& verb, const TranslatorSettings& settings, ProcessGroup& group) {
  const StopSignals signals;
  ProgressLine line;
  if (const std::string remark = too_many_threads(group, thread_count());
      group.rank() == 0 && !remark.empty())
    line.say(remark);
  TrainingWatcher watcher;
  watcher.remark = [&](const std::string& remark) { line.say(with_flags(verb, remark)); };
  watcher.progress = [&](const TrainingProgress& progress) { line.show(progress); };
  watcher.validated = [&](const Validation& validation) {
    line.say(fmt::format("update {}: validation {}", validation.update, scores(validation)));
  };
  watcher.stop = [] { return StopSignals::asked() != 0; };
  const TrainingResult result = [&] {
    try {
      return train_translator(settings, watcher, group);
    } catch (const Interrupted& stopped) {
      std::string message = stopped.what();
      if (kept_settings(settings.model))
        message +=
            fmt::format("; go on with: {} train --model {}", this_program(), shell_word(settings.model));
      throw StoppedBySignal(message, StopSignals::asked());
    }
  }();
  if (group.rank() != 0) return;
  if (result.was_finished) {
    line.say(
        fmt::format("{} is finished: {} after {}; more --updates or --epochs go on from there, another "
                    "--model begins anew",
                    settings.model, run_end_text(result.end), counted(result.updates, "update")));
    return;
  }
  std::string which = result.averaged.size() == 1
                          ? fmt::format("update {}", result.averaged[0])
                          : fmt::format("the mean of {} checkpoints", result.averaged.size());
  if (result.final) which += ", " + scores(*result.final);
  line.say(fmt::format("{}: {}; made {} ({})", run_end_text(result.end), counted(result.updates, "update"),
                       settings.model, which));
}

struct TrainFlags {
  SettingFlags settings;
  std::string config;
  bool dump_config = false;
};

// What is given, in the file of settings and on the command line, in place of what was there.
TranslatorSettings with_given(TranslatorSettings before, const TrainFlags& flags, const std::string& config) {
  SettingsFile file{std::move(before)};
  if (!flags.config.empty()) from_json(file, config, flags.config);
  flags.settings.take(file.settings);
  return file.settings;
}

// Where a run was stopped, what is not given is as it was. Rank 0 has the folder.
TranslatorSettings wanted(const TrainFlags& flags, const std::string& config, ProcessGroup& group) {
  TranslatorSettings given = with_given({}, flags, config);
  std::optional<TranslatorSettings> kept;
  if (group.rank() == 0) kept = kept_settings(given.model);
  const std::string text = of_first_rank(group, kept ? to_json(SettingsFile{*kept}) : "");
  if (text.empty()) return given;
  SettingsFile file;
  from_json(file, text, "the settings that rank 0 keeps");
  return with_given(std::move(file.settings), flags, config);
}

std::string how_to_go_on(const std::string& lost, const std::string& model) {
  const std::vector<int64_t> saved = checkpoint_updates(model);
  return fmt::format("{}; all ranks stop; {}", lost,
                     saved.empty() ? std::string("no checkpoint was written yet")
                                   : fmt::format("the same command goes on from {}",
                                                 checkpoint_of(model, saved.back()).string()));
}

// As one of the processes that a launcher started, or alone.
void run_in_group(const Verb& verb, const TrainFlags& flags, const std::string& config) {
  const TranslatorSettings given = with_given({}, flags, config);
  std::unique_ptr<ProcessGroup> group;
  try {
    const auto tell = [model = given.model](const std::string& what) {
      to_stderr(fmt::format("multihead: {}\n", how_to_go_on(what, model)));
    };
    group =
        join_processes({.deadline = std::chrono::milliseconds(static_cast<int64_t>(given.rank_timeout * 1e3)),
                        .lost = tell,
                        .stuck = [tell](const std::string& what) { tell(what), std::_Exit(1); }});
    run(verb, wanted(flags, config, *group), *group);
  } catch (const LostRank& lost) {
    if (!lost.this_rank_speaks()) throw AlreadyTold(1);
    throw Error(how_to_go_on(lost.what(), given.model));
  } catch (...) {
    if (launched_rank() != 0) throw AlreadyTold(1);
    // Before the group ends: a launcher ends this rank, too, when another one has ended.
    throw AlreadyTold(tell_failure(*verb.get_parent(), std::current_exception()));
  }
}

}  // namespace

void add_train(Verb& app) {
  Verb& verb = *app.add_subcommand("train", "Train a translator, or go on where a run stopped");
  auto flags = std::make_shared<TrainFlags>();
  flags->settings.add(verb, TranslatorSettings{});
  verb.add_option("--config", flags->config, "Read settings from this JSON file; a flag wins");
  verb.add_flag("--dump-config", flags->dump_config,
                "Print all settings as JSON, as --config reads them, and stop");
  name_values(
      verb, "FILE",
      {"--train-source", "--train-target", "--valid-source", "--valid-target", "--tokenizer", "--config"});
  name_values(verb, "DIR", {"--model"});
  name_values(verb, "MODEL", {"--init-from"});
  name_values(verb, "PRESET", {"--preset"});
  name_values(verb, "GEOMETRY", {"--geometry"});
  common_flags(verb, {"--config", "--dump-config", "--train-source", "--train-target", "--valid-source",
                      "--valid-target", "--model", "--vocabulary-size", "--lowercase", "--preset",
                      "--geometry", "--updates", "--epochs", "--batch-tokens", "--learning-rate", "--seed",
                      "--validate-every", "--patience", "--average"});
  verb.footer(
      "Example:\n"
      "  multihead train --train-source train.en --train-target train.de \\\n"
      "    --valid-source val.en --valid-target val.de --model en-de --preset tiny \\\n"
      "    --lowercase --updates 8000 --average 10 --average-of last\n"
      "From a translator that was trained already, of any family:\n"
      "  multihead train --init-from nllb --from eng --to deu --model en-de \\\n"
      "    --train-source train.en --train-target train.de --epochs 2 \\\n"
      "    --learning-rate 5e-5 --warmup 500\n"
      "Ctrl-C saves first. --model alone then goes on from the newest checkpoint:\n"
      "  multihead train --model en-de --updates 12000");
  verb.callback([flags, &verb] {
    // Once: it may be a pipe.
    const std::string config = flags->config.empty() ? "" : read_file(flags->config);
    if (flags->dump_config) {
      OneProcess alone;
      write_text("", to_json(SettingsFile{resolved(wanted(*flags, config, alone))}));
      return;
    }
    run_in_group(verb, *flags, config);
  });
}

}  // namespace mh::cli
