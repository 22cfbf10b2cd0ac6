// multihead heads patch: which heads, patterns and layers decide between two answers.
#include <memory>
#include <string>
#include <utility>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/heads/heads_verbs.h"
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
  PatchQuestion question = {};
  HeadChangeFlags changes = {};
  int64_t strongest = 10;
  int token = 0;
};

PatchReport patched(const ModelFlags& of, const PatchQuestion& question, PatchOptions options,
                    ChangedHeads changed) {
  const ScoredModel model = load_scored(of);
  changed.check(model.folder());
  options.sites = changed.sites();
  return model.folder().gives_vectors_alone() ? heads_patch(model.sentences(), question, options)
                                              : heads_patch(model.folder(), question, options);
}

void run_patch(const PatchFlags& flags, const Verb& verb) {
  for (const auto& [text, flag] :
       {std::pair(&flags.question.clean, "--clean"), std::pair(&flags.question.corrupt, "--corrupt"),
        std::pair(&flags.question.answer, "--answer"), std::pair(&flags.question.wrong, "--wrong"),
        std::pair(&flags.question.prefix, "--prefix")})
    check_utf8(*text, flag);
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
  PatchQuestion question = flags.question;
  if (verb.get_option("--token")->count() > 0) question.position = flags.token;
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
  verb->add_option("--clean", flags->question.clean, "Text on which the model prefers the answer")
      ->required();
  verb->add_option("--corrupt", flags->question.corrupt, "Text of equally many tokens on which it does not")
      ->required();
  verb->add_option("--answer", flags->question.answer,
                   "Word that the model predicts next after the clean text, or at its mask; for sentence "
                   "vectors a text")
      ->required();
  verb->add_option("--wrong", flags->question.wrong, "Word that it predicts after the corrupt text")
      ->required();
  verb->add_option("--prefix", flags->question.prefix,
                   "Beginning of a translator's target, after which the answer comes");
  add_number(*verb, "--token", flags->token, {.low = 0},
             "Of a classifier of tokens: the token between whose labels it decides, counted from 0")
      ->default_str("");
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
  verb->callback([flags, verb] { run_patch(*flags, *verb); });
}

}  // namespace mh::cli
