// multihead heads patch: which heads, patterns and layers decide between two answers.
#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/patch_report.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/patch_json.h"

namespace mh::cli {
namespace {

struct PatchFlags {
  std::string model = {}, output = {};
  PatchQuestion question = {};
  PatchOptions options = {};
  HeadChangeFlags changes = {};
  int64_t strongest = 10;
  bool json = false;
};

PatchReport patched(const PatchFlags& flags, const PatchOptions& options) {
  const ModelFolder folder = load_model(flags.model);
  if (folder.model->predicts()) return heads_patch(folder, flags.question, options);
  const SentenceModel model = load_sentence_model(flags.model);
  return heads_patch(model, flags.question, options);
}

void run_patch(PatchFlags& flags) {
  for (const auto& [text, flag] :
       {std::pair(&flags.question.clean, "--clean"), std::pair(&flags.question.corrupt, "--corrupt"),
        std::pair(&flags.question.answer, "--answer"), std::pair(&flags.question.wrong, "--wrong"),
        std::pair(&flags.question.prefix, "--prefix")})
    check_utf8(*text, flag);
  SiteValues changed = changed_heads(flags.changes);
  PatchOptions options = flags.options;
  if (!changed.empty()) options.sites = &changed;
  // At all positions at once the stream of a model that reads one text is the clean run.
  if (options.part == PatchedPart::kStream) options.by_position = true;
  options.remark = [](const std::string& line) { remark(line); };
  Progress progress("read", "runs");
  options.progress = [&](int64_t done, int64_t all) {
    progress.expect(all);
    progress.show(done);
  };
  const PatchReport patching = patched(flags, options);
  progress.clear();
  write_text(flags.output,
             flags.json ? patch_json(patching, flags.model) : patching_tables(patching, flags.strongest));
}

}  // namespace

void add_heads_patch(Verb& heads) {
  auto flags = std::make_shared<PatchFlags>();
  Verb* verb = heads.add_subcommand(
      "patch", "Which heads decide between two words: values of a clean run in a corrupt one");
  add_model(*verb, flags->model, "The model folder, a .gguf file, or demo")->required();
  verb->add_option("--clean", flags->question.clean, "Text on which the model prefers the answer")
      ->required();
  verb->add_option("--corrupt", flags->question.corrupt, "Text of equally many tokens on which it does not")
      ->required();
  verb->add_option("--answer", flags->question.answer,
                   "Next word, or the masked one; for models of sentence vectors a text")
      ->required();
  verb->add_option("--wrong", flags->question.wrong, "What the corrupt text leads to")->required();
  verb->add_option("--prefix", flags->question.prefix,
                   "How the target of a translator begins; the answer follows it");
  add_choice(*verb, "--what", flags->options.part, kPatchedPartNames,
             "What is put in: heads' outputs, their patterns (weights), or each layer's stream");
  verb->add_flag("--by-position", flags->options.by_position,
                 "Patch one position at a time (always for the stream)");
  add_number(*verb, "--strongest", flags->strongest, {.low = 0, .high = 1000000},
             "How many of the strongest are listed");
  add_head_change_flags(*verb, flags->changes);
  add_number(*verb, "--max-batch-tokens", flags->options.max_batch_tokens, {.low = 1},
             "Most tokens of runs that go together");
  verb->add_flag("--json", flags->json, "Write JSON, all values, instead of tables");
  add_output_flag(*verb, "-o,--output", flags->output, "Write to this file instead of standard output");
  name_values(*verb, "FILE", {"--output"});
  rare_flags(*verb, {"--prefix", "--strongest", "--max-batch-tokens"});
  verb->footer(
      "Example:\n"
      "  multihead heads patch smollm2.gguf --clean 'The capital of France is' \\\n"
      "    --corrupt 'The capital of Italy is' --answer Paris --wrong Rome\n"
      "  multihead heads patch bert --clean 'Paris is the capital of [MASK].' \\\n"
      "    --corrupt 'Rome is the capital of [MASK].' --answer france --wrong italy \\\n"
      "    --what stream");
  verb->callback([flags] { run_patch(*flags); });
}

}  // namespace mh::cli
