// multihead heads importance: which heads matter, ranked, and what a model loses when they go.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/heads/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/importance_report.h"
#include "cli/help_format.h"
#include "cli/options.h"
#include "multihead/base/error.h"
#include "multihead/heads/importance/importance_json.h"

namespace mh::cli {
namespace {

struct ImportanceFlags {
  CorpusFlags corpus = {};
  HeadImportanceOptions options = {};
  PruningCurveOptions curve = {};
  std::vector<std::string> heads = {};
  bool one_per_layer = false, with_curve = false;
  int64_t top = 20;
};

void run_importance(ImportanceFlags& flags) {
  HeadImportanceOptions& options = flags.options;
  if (flags.one_per_layer) {
    if (options.measure == ImportanceMeasure::kGradient)
      throw UsageError("--one-per-layer takes heads away; add --by ablation");
    if (flags.with_curve)
      throw UsageError(
          "--one-per-layer ranks each attention's heads as the only one; a --curve mutes them in one "
          "order, so leave one of the two out");
    options.measure = ImportanceMeasure::kAlone;
    options.within_attentions = true;
  }
  for (const std::string& head : flags.heads) options.heads.emplace_back(head);
  CorpusRun run(flags.corpus, true);
  options.texts.read = run.options();
  if (!flags.with_curve) {
    const HeadImportanceReport report = head_importance(run.model(), run.corpus(), options);
    return write_text(flags.corpus.output, flags.corpus.json
                                               ? importance_json(report, flags.corpus.model)
                                               : importance_table(report, static_cast<size_t>(flags.top)));
  }
  const PruningCurve curve = pruning_curve(run.model(), run.corpus(), options, flags.curve);
  write_text(flags.corpus.output,
             flags.corpus.json
                 ? importance_json(curve, flags.corpus.model)
                 : importance_table(curve.importance, static_cast<size_t>(flags.top)) + curve_table(curve));
}

/// Without "alone", which --one-per-layer asks for.
constexpr EnumNames<ImportanceMeasure> kMeasures = {{"gradient", ImportanceMeasure::kGradient},
                                                    {"ablation", ImportanceMeasure::kAblation}};

}  // namespace

void add_heads_importance(CLI::App& heads) {
  auto flags = std::make_shared<ImportanceFlags>();
  CLI::App* verb = heads.add_subcommand(
      "importance", "How much each head matters on a corpus, ranked; the score as heads are muted");
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  HeadImportanceOptions& options = flags->options;
  add_choice(*verb, "--by", options.measure, kMeasures,
             "Gradients of gates (fast), or leaving each head out");
  add_choice(*verb, "--to", options.to, kAblatedToNames, "What a head's output becomes when it is left out");
  verb->add_option("--heads", flags->heads, "These heads alone, e.g. 'encoder.*'; may be given again")
      ->type_name("HEAD")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--normalised", options.normalised, "Divide by the length of its attention's gradients");
  verb->add_flag("--layer-by-layer", options.within_attentions,
                 "Rank the heads of each attention by themselves");
  verb->add_flag("--one-per-layer", flags->one_per_layer,
                 "Leave out all others of an attention instead of one");
  add_number(*verb, "--top", flags->top, {.low = 0, .high = 1000000}, "Heads shown; 0: all");
  verb->add_flag("--curve", flags->with_curve,
                 "Rank on every second line; mute heads and score the other lines");
  add_number(*verb, "--points", flags->curve.points, {.low = 1, .high = 10000}, "Steps of the curve");
  add_number(*verb, "--random", flags->curve.random_orders, {.low = 0, .high = 1000},
             "Random orders beside it");
  add_number(*verb, "--masked", options.texts.masked, {.low = 0.001, .high = 1},
             "Share of the words that a model of masked words predicts");
  add_number(*verb, "--seed", options.texts.seed, {.low = 0}, "Of the masks and the random orders");
  rare_flags(*verb, {"--points", "--random", "--masked", "--seed"});
  verb->footer(
      "Example:\n"
      "  multihead heads importance minilm -i corpus.txt\n"
      "  multihead heads importance demo -i test.en --target test.de \\\n"
      "    --by ablation --curve");
  verb->callback([flags, verb] {
    refuse_flags_of_heads(*verb);
    flags->curve.seed = flags->options.texts.seed;
    run_importance(*flags);
  });
}

}  // namespace mh::cli
