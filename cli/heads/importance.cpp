// multihead heads importance: which heads matter, ranked, and what a model loses when they go.
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/heads/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/importance_report.h"
#include "cli/heads/report_flags.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/heads/reports/importance_json.h"

namespace mh::cli {
namespace {

struct ImportanceFlags {
  CorpusFlags corpus = {};
  ReportFlags<ImportanceSettings> settings = {};
  int64_t top = 20;
};

void run_importance(const ImportanceFlags& flags) {
  ImportanceSettings settings = flags.settings.given();
  CorpusRun run(flags.corpus, true);
  settings.importance.texts.read = run.options();
  const auto top = static_cast<size_t>(flags.top);
  const auto write = [&](const auto& found, const auto& table_of) {
    write_text(flags.corpus.output,
               flags.corpus.json
                   ? flags.settings.with_options(importance_json(found, flags.corpus.model), settings)
                   : table_of(found));
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
      "importance", "How much each head matters on a corpus, ranked; the score as heads are muted");
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  flags->settings.add(*verb);
  add_number(*verb, "--top", flags->top, {.low = 0, .high = 1000000}, "Heads shown; 0: all");
  verb->footer(
      "Example:\n"
      "  multihead heads importance minilm -i corpus.txt\n"
      "  multihead heads importance demo -i test.en --target test.de --by ablation \\\n"
      "    --curve");
  verb->callback([flags] { run_importance(*flags); });
}

}  // namespace mh::cli
