// multihead heads alignment: which heads of cross-attention align words.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/heads_report.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/measures_json.h"

namespace mh::cli {
namespace {

std::string row(const std::string& name, const AlignmentScore& score, const char* query) {
  return fmt::format("{:<32}{:<9}{:>10.1f}{:>8.1f}{:>7.1f}{:>9.1f}\n", name, query, 100 * score.precision(),
                     100 * score.recall(), 100 * score.error_rate(), 100 * score.accuracy());
}

std::string alignment_table(const AlignmentReport& report, size_t top) {
  std::vector<AlignmentScore> best = report.aligners;
  std::stable_sort(best.begin(), best.end(), [](const AlignmentScore& a, const AlignmentScore& b) {
    return a.error_rate() < b.error_rate();
  });
  std::string text = fmt::format("{}, {} aligned words\n\n{:<32}{:<9}{:>10}{:>8}{:>7}{:>9}\n",
                                 counted(report.read.sentences, "sentence"), grouped(report.baseline.support),
                                 "head", "query", "precision", "recall", "AER", "accuracy");
  for (size_t i = 0; i < std::min(top, best.size()); ++i)
    text += row(best[i].name(), best[i], best[i].query == AlignedQuery::kPredicts ? "predicts" : "reads");
  text += row("best fixed offset: " + word_offset(report.baseline.offset), report.baseline, "");
  return text + "\n" +
         wrapped(
             "In %. A head gives each target word the source word with the largest weight, or none when the "
             "end token "
             "has it. query: the decoder's position that predicts the word, or that has just read it; mean: "
             "the mean "
             "of the layer's heads; AER: alignment error rate, 0 is best (Och and Ney 2003); accuracy: "
             "aligned words "
             "whose source word is one of theirs.");
}

}  // namespace

void add_heads_alignment(Verb& heads) {
  struct Flags {
    ReportFlags<ObserveHeadsOptions> report = {};
    CorpusFlags corpus = {};
    int top = 10;
  };
  auto flags = std::make_shared<Flags>();
  Verb* verb = heads.add_subcommand("alignment", "Which heads of cross-attention align words");
  flags->report.add(*verb);
  add_corpus_flags(*verb, flags->corpus, {.trees = true, .alignment = true});
  add_number(*verb, "--top", flags->top, {.low = 1}, "Heads of the table");
  rare_flags(*verb, {"--top"});
  verb->footer(
      "Example:\n"
      "  multihead heads alignment demo -i test.en --target test.de \\\n"
      "    --alignment test.align");
  verb->callback([flags] {
    if (flags->corpus.alignment.empty())
      throw UsageError("alignments are needed to compare with: give --alignment FILE");
    ObserveHeadsOptions options = flags->report.settings.given();
    CorpusRun run(load_model(flags->report.model_to_run()), flags->corpus);
    run.attach(options);
    flags->report.write(heads_alignment(run.folder(), run.corpus(), options), options, alignment_json,
                        [&](const AlignmentReport& found) {
                          return alignment_table(found, static_cast<size_t>(flags->top));
                        });
  });
}

}  // namespace mh::cli
