// multihead demo: data, training, translation and a look at the heads, in about a minute.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/flag_names.h"
#include "cli/heads_report.h"
#include "cli/options.h"
#include "cli/shell_words.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "lab/demo/demo.h"
#include "lab/demo/demo_page.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/pictures/heat_map.h"

namespace mh::cli {
namespace {

using Clock = std::chrono::steady_clock;

void say(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// "update 300 of 1200, loss 0.71, 18 s left": redrawn on a terminal, now and then elsewhere.
class TrainingLine {
 public:
  void show(const TrainingProgress& progress) {
    const bool last = progress.update == progress.updates;
    if (quiet() || (!last && seconds_since(shown_) < (terminal_ ? 0.2 : 10.0))) return;
    shown_ = Clock::now();
    std::string line = fmt::format("update {} of {}, loss {:.3f}, {:.0f} tokens/s", progress.update,
                                   progress.updates, progress.loss, progress.target_tokens_per_second);
    if (progress.seconds_left && !last) line += fmt::format(", {:.0f} s left", *progress.seconds_left);
    to_stderr(terminal_ ? fmt::format("\r  {}\x1b[K{}", line, last ? "\n" : "")
                        : fmt::format("  {}\n", line));
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  Clock::time_point shown_{};
};

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string exactness(const DemoResult& result) {
  return fmt::format(
      "exact match {} of {} ordinary sentences\n"
      "exact match {} of {} compositional ones: {} of those with a verb\n"
      "  and object never seen together, {} of those with clauses nested deeper\n"
      "the translator that comes with multihead, named demo, gives {} of these\n"
      "  translations in the same words, and {} of its own are exact\n",
      percent(result.ordinary.share()), result.ordinary.all, percent(result.compositional().share()),
      result.compositional().all, percent(result.verb_object.share()), percent(result.depth.share()),
      percent(result.alike.share()), percent(result.shipped.share()));
}

/// Lines of at most 80 columns, indented by two, further ones by four.
std::string indented(const std::string& sentence) {
  return wrapped(sentence, "  ", 80, "  ");
}

std::string examples(const DemoResult& result) {
  std::string text;
  for (const DemoExample& example : result.examples) {
    text += "\n" + indented(example.source) + indented(example.translation);
  }
  for (const DemoExample& mistake : result.mistakes) {
    text += "\n" + indented(mistake.source) + indented(mistake.translation) +
            indented("(wrong; the grammar says: " + mistake.expected + ")");
  }
  return text;
}

std::string finding(const char* what, const std::string& head, double score, const std::string& baseline) {
  return fmt::format("  {:<33}{:<28}{:>7}{:>9}\n", what, head, percent(score), baseline);
}

std::string findings(const DemoResult& result) {
  const AlignmentScore& aligner = result.aligner;
  std::string text = fmt::format("  {:<33}{:<28}{:>7}{:>9}\n", "", "head", "score", "offset");
  text += finding("reads the previous word", result.previous_word.name(), result.previous_word.score(), "");
  for (const auto& [what, score] : result.relations) {
    text += finding(what.c_str(), score.name(), score.score(), percent(score.baseline()));
  }
  text += finding("aligns (cross-attention)", aligner.name(), aligner.accuracy(),
                  percent(result.heads.alignment_baseline->accuracy()));
  return text;
}

void run(const Verb& verb, DemoSettings& settings) {
  const auto start = Clock::now();
  TrainingLine line;
  DemoWatcher watcher;
  watcher.step = [](const std::string& text) { say(fmt::format("* {}\n", text)); };
  watcher.training.remark = [&verb](const std::string& text) {
    say(fmt::format("* training: {}\n", with_flags(verb, text)));
  };
  watcher.training.progress = [&](const TrainingProgress& progress) { line.show(progress); };
  const DemoResult result = run_demo(settings, watcher);

  std::string text = "\n";
  if (result.training.was_finished)
    text +=
        fmt::format("(the model was there already; remove {} to train again)\n", settings.folder.string());
  text += exactness(result) + examples(result);
  text +=
      "\nWhat its heads do: how often the word a head reads most is the right one, beside\n"
      "what the best fixed offset (always the word before, ...) scores\n" +
      findings(result);
  const HeadName head{result.aligner.attention, result.aligner.head};
  const HeatMapOptions options = picture_options();
  text += "\n" + head_picture(result.sentence, head, options) + "\n" + heat_map_legend(options.cells);
  const std::string program = this_program(), model = shell_word((settings.folder / "model").string()),
                    trees = shell_word((settings.folder / "corpus" / "test.en.conllu").string());
  const DemoPage page = write_demo_page(settings, result);
  text += fmt::format(
      "\nSee its heads, and try it without them: open {} in a browser; the\n"
      "translator is in the page, and answers there.\n  {}\n",
      page.file.string(), page.title);
  text += fmt::format(
      "\nThe model is in {0} ({1:.0f} s in all). Go on with\n"
      "  echo 'the small dog sees a cat .' | {2} translate {0}\n"
      "  {2} heads {0} --conllu {3}\n"
      "  {2} heads {0} --text 'the small dog sees a cat .'\n",
      model, seconds_since(start), program, trees);
  say(text);
}

}  // namespace

void add_demo(Verb& app) {
  auto settings = std::make_shared<DemoSettings>(demo_settings());
  auto folder = std::make_shared<std::string>(settings->folder.string());
  auto seed = std::make_shared<uint64_t>(settings->grammar.seed);
  Verb* verb =
      app.add_subcommand("demo", "Train a small translator on the built-in data and look at its heads");
  verb->add_option("--out", *folder, "Folder to write: the data in corpus/, the model in model/");
  add_number(*verb, "--seed", *seed, {}, "Seed of the data and the model");
  auto updates = std::make_shared<int64_t>(settings->translator.updates);
  add_number(*verb, "--updates", *updates, {.low = 1, .high = 1'000'000}, "Number of training updates");
  name_values(*verb, "DIR", {"--out"});
  verb->footer("Example:\n  multihead demo\n  multihead demo --out /tmp/demo --seed 7");
  verb->callback([=] {
    DemoSettings chosen = demo_settings(*seed);
    chosen.folder = *folder;
    chosen.translator.updates = *updates;
    run(*verb, chosen);
  });
}

}  // namespace mh::cli
