// multihead train: learns to translate from two text files, or goes on where a run stopped.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cli/common.h"
#include "cli/flag_names.h"
#include "cli/help_format.h"
#include "cli/setting_flags.h"
#include "cli/stop_signals.h"
#include "cli/verbs.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"
#include "multihead/io/setting_visitor.h"
#include "multihead/recipes/train_translator.h"

namespace mh::cli {
namespace {

// The settings in --config and --dump-config, where they are called as the flags are.
template <class V>
class CalledAsFlags : public SettingVisitor<CalledAsFlags<V>> {
 public:
  explicit CalledAsFlags(V& file) : file_(file) {}
  template <class T, class R>
  void setting(std::string_view name, T& value, const R& rule, const About&) {
    file_(flag_name(name), value, rule);
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

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

// One line on standard error: redrawn on a terminal, written now and then elsewhere.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }

  void show(const TrainingProgress& progress) {
    if (quiet()) return;
    const auto now = std::chrono::steady_clock::now();
    const auto pause = terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(30);
    if (any_ && now - last_ < pause) return;
    last_ = now;
    any_ = true;
    std::string line = fmt::format("update {}", progress.update);
    if (progress.updates > 0) line += fmt::format(" of {}", progress.updates);
    line += fmt::format(", epoch {}, loss {:.3f}, {:.0f} tokens/s", progress.epoch, progress.loss,
                        progress.target_tokens_per_second);
    if (progress.seconds_left) line += fmt::format(", {} left", clock_text(*progress.seconds_left));
    if (terminal_) {
      to_stderr(fmt::format("\r{}\x1b[K", line));
      drawn_ = true;
    } else {
      to_stderr(line + "\n");
    }
  }
  void say(const std::string& line) {
    if (quiet()) return;
    clear();
    to_stderr(line + "\n");
  }

 private:
  void clear() {
    if (drawn_) to_stderr("\r\x1b[K");
    drawn_ = false;
  }
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool any_ = false, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

std::string scores(const Validation& validation) {
  std::string text = fmt::format("loss {:.4f}, perplexity {:.3f}", validation.loss, validation.perplexity);
  if (validation.bleu) text += fmt::format(", BLEU {:.2f}", *validation.bleu);
  return text;
}

void run(const CLI::App& verb, const TranslatorSettings& settings) {
  const StopSignals signals;
  ProgressLine line;
  TrainingWatcher watcher;
  watcher.remark = [&](const std::string& remark) { line.say(with_flags(verb, remark)); };
  watcher.progress = [&](const TrainingProgress& progress) { line.show(progress); };
  watcher.validated = [&](const Validation& validation) {
    line.say(fmt::format("update {}: validation {}", validation.update, scores(validation)));
  };
  watcher.stop = [] { return StopSignals::asked() != 0; };
  const TrainingResult result = [&] {
    try {
      return train_translator(settings, watcher);
    } catch (const Interrupted& stopped) {
      throw StoppedBySignal(stopped.what(), StopSignals::asked());
    }
  }();
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

}  // namespace

void add_train(CLI::App& app) {
  CLI::App& verb = *app.add_subcommand("train", "Train a translator, or go on where a run stopped");
  auto flags = std::make_shared<TrainFlags>();
  flags->settings.add(verb, TranslatorSettings{});
  verb.add_option("--config", flags->config, "Read settings from this JSON file; a flag wins");
  verb.add_flag("--dump-config", flags->dump_config,
                "Print all settings as JSON, as --config reads them, and stop");
  name_values(
      verb, "FILE",
      {"--train-source", "--train-target", "--valid-source", "--valid-target", "--tokenizer", "--config"});
  name_values(verb, "DIR", {"--model", "--init-from"});
  name_values(verb, "PRESET", {"--preset"});
  name_values(verb, "GEOMETRY", {"--geometry"});
  common_flags(verb, {"--config", "--dump-config", "--train-source", "--train-target", "--valid-source",
                      "--valid-target", "--model", "--vocabulary-size", "--lowercase", "--preset",
                      "--geometry", "--updates", "--epochs", "--batch-tokens", "--learning-rate", "--seed",
                      "--validate-every", "--patience", "--average"});
  verb.footer(
      "Example:\n"
      "  multihead train --train-source train.en --train-target train.de \\\n"
      "    --valid-source val.en --valid-target val.de --model en-de --preset tiny --lowercase \\\n"
      "    --updates 8000 --average 10 --average-of last\n"
      "The same command again goes on from the newest checkpoint; Ctrl-C saves first.");
  verb.callback([flags, &verb] {
    SettingsFile file;
    if (!flags->config.empty()) from_json(file, read_file(flags->config), flags->config);
    TranslatorSettings& settings = file.settings;
    flags->settings.take(settings);
    if (flags->dump_config) {
      write_text("", to_json(SettingsFile{resolved(settings)}));
      return;
    }
    run(verb, settings);
  });
}

}  // namespace mh::cli
