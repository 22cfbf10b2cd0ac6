// multihead heads importance: which heads matter, ranked, and what a model loses when they go.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/heads/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/importance_report.h"
#include "cli/options.h"
#include "cli/setting_flags.h"
#include "multihead/base/file.h"
#include "multihead/heads/importance/importance_json.h"
#include "multihead/heads/report_options.h"

namespace mh::cli {
namespace {

struct ImportanceFlags {
  CorpusFlags corpus = {};
  SettingFlags settings = {};
  std::string options = {};
  int64_t top = 20;
};

void run_importance(const ImportanceFlags& flags) {
  ImportanceSettings settings;
  if (!flags.options.empty())
    read_report_options(settings, read_file(flags.options), "importance", flags.options);
  flags.settings.take(settings);
  CorpusRun run(flags.corpus, true);
  settings.importance.texts.read = run.options();
  const auto top = static_cast<size_t>(flags.top);
  if (!settings.curve) {
    const HeadImportanceReport report = head_importance(run.model(), run.corpus(), settings.importance);
    return write_text(flags.corpus.output, flags.corpus.json
                                               ? importance_json(report, settings, flags.corpus.model)
                                               : importance_table(report, top));
  }
  const PruningCurve curve = pruning_curve(run.model(), run.corpus(), settings.importance, settings.steps);
  write_text(flags.corpus.output, flags.corpus.json
                                      ? importance_json(curve, settings, flags.corpus.model)
                                      : importance_table(curve.importance, top) + curve_table(curve));
}

}  // namespace

void add_heads_importance(CLI::App& heads) {
  auto flags = std::make_shared<ImportanceFlags>();
  CLI::App* verb = heads.add_subcommand(
      "importance", "How much each head matters on a corpus, ranked; the score as heads are muted");
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  flags->settings.add(*verb, ImportanceSettings());
  add_number(*verb, "--top", flags->top, {.low = 0, .high = 1000000}, "Heads shown; 0: all");
  add_options_flag(*verb, flags->options);
  verb->footer(
      "Example:\n"
      "  multihead heads importance minilm -i corpus.txt\n"
      "  multihead heads importance demo -i test.en --target test.de \\\n"
      "    --by ablation --curve");
  verb->callback([flags, verb] {
    refuse_flags_of_heads(*verb);
    run_importance(*flags);
  });
}

}  // namespace mh::cli
