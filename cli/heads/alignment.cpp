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
#include "multihead/data/alignment.h"
#include "multihead/folders/alignment_heads.h"
#include "multihead/heads/reports/measures_json.h"

namespace mh::cli {
namespace {

std::string row(const std::string& name, const AlignmentScore& score, const char* query) {
  return fmt::format("{:<32}{:<9}{:>10.1f}{:>8.1f}{:>7.1f}{:>9.1f}\n", name, query, 100 * score.precision(),
                     100 * score.recall(), 100 * score.error_rate(), 100 * score.accuracy());
}

const char* query_name(const AlignmentScore& score) {
  return name_of(score.query, kAlignedQueryNames);
}

std::string names_of(const AligningHeads& heads) {
  std::string names;
  for (const AligningHead& one : heads.heads) {
    names += fmt::format("{}decoder.{}.cross_attention.{}", names.empty() ? "" : ", ", one.layer, one.head);
  }
  return names;
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
    text += row(best[i].name(), best[i], query_name(best[i]));
  text += row("best fixed offset: " + word_offset(report.baseline.offset), report.baseline, "");
  if (report.chosen) {
    text += row(report.chosen->heads.heads.size() > 1 ? "chosen, their mean" : "chosen", report.chosen->score,
                query_name(report.chosen->score));
    text += "\n" + wrapped("chosen: " + names_of(report.chosen->heads));
  }
  return text + "\n" +
         wrapped(
             "In %. A head gives each target word the source word with the largest weight, or none when the "
             "end token "
             "has it. query: the decoder's position that predicts the word, or that has just read it; mean: "
             "the mean "
             "of the layer's heads; AER: alignment error rate, 0 is best (Och and Ney 2003); accuracy: "
             "aligned words "
             "whose source word is one of theirs." +
             std::string(report.chosen ? " The alignment that they are compared with is the model's own: the "
                                         "source word without which a target word loses most."
                                       : ""));
}

/// Heads chosen without gold alignments.
struct ChoiceFlags {
  bool no_gold = false, save = false;
  int pairs = 200;
  std::string pharaoh = {};

  void add(Verb& verb) {
    Flag* without = verb.add_flag("--no-gold", no_gold,
                                  "Compare with what leaving out each source word costs, and choose heads");
    add_number(verb, "--pairs", pairs, {.low = 1}, "With --no-gold: choose by the first N pairs")
        ->needs(without);
    add_output_flag(verb, "--pharaoh", pharaoh,
                    "With --no-gold: write the alignment of every line by the heads that are chosen")
        ->type_name("FILE")
        ->needs(without);
    verb.add_flag("--save", save,
                  "With --no-gold: write the heads that are chosen into the model's generation_config.json")
        ->needs(without);
    without->excludes(verb.get_option("--alignment"));
  }
};

AlignmentReport choose(const ChoiceFlags& flags, CorpusRun& run, const ObserveHeadsOptions& options) {
  if (flags.save) check_can_save_alignment_heads(run.folder());
  AlignmentReport report =
      heads_alignment_without_gold(run.folder(), run.corpus(), {.read = options, .pairs = flags.pairs});
  if (!flags.pharaoh.empty()) {
    ObserveHeadsOptions again = options;
    again.remark = nullptr;  // what there is to say was said
    std::string lines;
    for (const Alignment& one : align_words(run.folder(), run.corpus(), report.chosen->heads, again))
      lines += format_pharaoh(one) + "\n";
    write_text(flags.pharaoh, lines);
  }
  if (flags.save) save_alignment_heads(run.folder(), report.chosen->heads);
  return report;
}

}  // namespace

void add_heads_alignment(Verb& heads) {
  struct Flags {
    ReportFlags<ObserveHeadsOptions> report = {};
    CorpusFlags corpus = {};
    ChoiceFlags choice = {};
    int top = 10;
  };
  auto flags = std::make_shared<Flags>();
  Verb* verb = heads.add_subcommand("alignment", "Which heads of cross-attention align words");
  flags->report.add(*verb);
  add_corpus_flags(*verb, flags->corpus, {.trees = true, .alignment = true});
  flags->choice.add(*verb);
  add_number(*verb, "--top", flags->top, {.low = 1}, "Heads of the table");
  rare_flags(*verb, {"--top"});
  verb->footer(
      "Example:\n"
      "  multihead heads alignment demo -i test.en --target test.de \\\n"
      "    --alignment test.align\n"
      "  multihead heads alignment model -i test.en --target test.de --no-gold --save");
  verb->callback([flags] {
    if (flags->corpus.alignment.empty() && !flags->choice.no_gold)
      throw UsageError("alignments are needed to compare with: give --alignment FILE, or --no-gold");
    ObserveHeadsOptions options = flags->report.settings.given();
    CorpusRun run(load_model(flags->report.model_to_run()), flags->corpus);
    run.attach(options);
    const AlignmentReport report = flags->choice.no_gold
                                       ? choose(flags->choice, run, options)
                                       : heads_alignment(run.folder(), run.corpus(), options);
    flags->report.write(report, options, alignment_json, [&](const AlignmentReport& found) {
      return alignment_table(found, static_cast<size_t>(flags->top));
    });
  });
}

}  // namespace mh::cli
