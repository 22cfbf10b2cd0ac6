// multihead heads importance: which heads matter, ranked, and what a model loses when they go.
#include <memory>
#include <string>

#include "cli/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/importance_report.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/heads/reports/importance_json.h"

namespace mh::cli {
namespace {

struct ImportanceFlags {
  ReportFlags<ImportanceSettings> report = {};
  CorpusFlags corpus = {};
  int64_t top = 20;
};

void run_importance(const ImportanceFlags& flags) {
  ImportanceSettings settings = flags.report.settings.given();
  CorpusRun run(load_scored(flags.report.model_to_run()), flags.corpus);
  run.attach(settings.importance.texts.read);
  const auto top = static_cast<size_t>(flags.top);
  const auto write = [&](const auto& found, const auto& table_of) {
    flags.report.write(
        found, settings,
        [](const auto& report, const std::string& model) { return importance_json(report, model); },
        table_of);
  };
  if (settings.curve) {
    write(pruning_curve(run.model(), run.corpus(), settings.importance, settings.steps),
          [&](const PruningCurve& curve) {
            return importance_table(curve.importance, top) + curve_table(curve);
          });
  } else {
    write(heads_importance(run.model(), run.corpus(), settings.importance),
          [&](const ImportanceReport& report) { return importance_table(report, top); });
  }
}

}  // namespace

void add_heads_importance(Verb& heads) {
  auto flags = std::make_shared<ImportanceFlags>();
  Verb* verb = heads.add_subcommand(
      "importance",
      "Rank heads by how much they matter on a corpus; --curve: the score as more of them are muted");
  flags->report.add(*verb);
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  add_number(*verb, "--top", flags->top, {.low = 0, .high = 1000000}, "Heads shown; 0: all");
  verb->footer(
      "Example:\n"
      "  multihead heads importance minilm -i corpus.txt\n"
      "  multihead heads importance demo -i test.en --target test.de --by ablation \\\n"
      "    --curve");
  verb->callback([flags] { run_importance(*flags); });
}

}  // namespace mh::cli
