// multihead heads patch: which heads, patterns and layers decide between two answers.
#include <memory>
#include <string>
#include <utility>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/pair_flags.h"
#include "cli/heads/patch_report.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/patch_json.h"

namespace mh::cli {
namespace {

struct PatchFlags {
  ReportFlags<PatchOptions> report = {};
  PairFlags pair = {};
  HeadChangeFlags changes = {};
  int64_t strongest = 10;
};

PatchReport patched(const ModelFlags& of, const PatchQuestion& question, PatchOptions options,
                    ChangedHeads changed) {
  const ScoredModel model = load_scored(of);
  changed.check(model.folder());
  options.sites = changed.sites();
  return model.folder().gives_vectors_alone() ? heads_patch(model.sentences(), question, options)
                                              : heads_patch(model.folder(), question, options);
}

void run_patch(const PatchFlags& flags) {
  const PatchQuestion question = flags.pair.given();
  PatchOptions options = flags.report.settings.given();
  ChangedHeads changed = changed_heads(flags.changes);
  // At all positions at once the stream of a model that reads one text is the clean run.
  if (options.part == PatchedPart::kStream) options.by_position = true;
  options.remark = [](const std::string& line) { remark(line); };
  Progress progress("read", "runs");
  options.progress = [&](int64_t done, int64_t all) {
    progress.expect(all);
    progress.show(done);
  };
  const PatchReport found = patched(flags.report.model_to_run(), question, options, std::move(changed));
  progress.clear();
  flags.report.write(found, options, patch_json,
                     [&](const PatchReport& patching) { return patching_tables(patching, flags.strongest); });
}

}  // namespace

void add_heads_patch(Verb& heads) {
  auto flags = std::make_shared<PatchFlags>();
  Verb* verb = heads.add_subcommand(
      "patch", "Activation patching: which values of a clean run restore its answer in a corrupt one");
  flags->report.add(*verb, "Write JSON, all values, instead of tables");
  flags->pair.add(*verb);
  for (Flag* flag : flags->pair.needed()) flag->required();
  add_number(*verb, "--strongest", flags->strongest, {.low = 0, .high = 1000000},
             "How many of the strongest are listed");
  add_head_change_flags(*verb, flags->changes);
  rare_flags(*verb, {"--strongest"});
  verb->footer(
      "Example:\n"
      "  multihead heads patch smollm2.gguf --clean 'The capital of France is' \\\n"
      "    --corrupt 'The capital of Italy is' --answer Paris --wrong Rome\n"
      "  multihead heads patch demo --clean 'the small dog sees a cat .' \\\n"
      "    --corrupt 'the small cat sees a cat .' --answer Hund --wrong Katze \\\n"
      "    --prefix 'der kleine'\n"
      "  multihead heads patch bert --clean 'Paris is the capital of [MASK].' \\\n"
      "    --corrupt 'Rome is the capital of [MASK].' --answer france --wrong italy \\\n"
      "    --what stream\n"
      "  multihead heads patch bert-ner --clean 'Paris sleeps' \\\n"
      "    --corrupt 'London sleeps' --token 1 --answer B-PER --wrong B-LOC");
  verb->callback([flags] { run_patch(*flags); });
}

}  // namespace mh::cli
