// multihead heads retrieval: which heads fetch a fact from far back in a long text, and which need the whole text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/head_changes.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/heads/retrieval_report.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "multihead/heads/reports/retrieval_json.h"
#include "multihead/heads/retrieval/heads_retrieval.h"

namespace mh::cli {
namespace {

struct RetrievalFlags {
  ReportFlags<RetrievalOptions> report = {};
  std::string needles = {}, filler = {};
  std::vector<std::string> lengths = {}, depths = {};
  HeadChangeFlags changes = {};
};

void run_retrieval(const RetrievalFlags& flags) {
  RetrievalOptions options = flags.report.settings.given();
  if (!flags.lengths.empty()) options.lengths.clear();
  for (const std::string& length : flags.lengths) options.lengths.push_back(*number_in<int32_t>(length));
  if (!flags.depths.empty()) options.depths.clear();
  for (const std::string& depth : flags.depths) options.depths.push_back(*number_in<double>(depth));
  RetrievalTexts texts;
  if (!flags.needles.empty()) texts.needles = needles_of(read_text(flags.needles), flags.needles);
  if (!flags.filler.empty()) texts.filler = fmt::format("{}", fmt::join(read_text(flags.filler), " "));
  ChangedHeads changed = changed_heads(flags.changes);
  options.sites = changed.sites();
  const ModelFolder folder = load_model(flags.report.model_to_run());
  changed.check(folder);
  Progress progress("read", "texts");
  options.progress = [&](int64_t done, int64_t all) {
    progress.expect(all);
    progress.show(done);
  };
  const RetrievalReport found = heads_retrieval(folder, texts, options);
  progress.clear();
  flags.report.write(found, options, retrieval_json, retrieval_tables);
}

}  // namespace

void add_heads_retrieval(Verb& heads) {
  auto flags = std::make_shared<RetrievalFlags>();
  Verb* verb = heads.add_subcommand("retrieval",
                                    "Retrieval heads: which heads fetch a fact from far back in a long text");
  flags->report.add(*verb);
  verb->add_option("--needles", flags->needles,
                   "Facts that are put into the text, one a line: a sentence, a question and its answer with "
                   "tabs between them; without: ten that come with the tool")
      ->type_name("FILE");
  verb->add_option(
          "--filler", flags->filler,
          "The text around them, repeated where it is too short; without: one that comes with the tool")
      ->type_name("FILE");
  check_number(
      verb->add_option("--lengths", flags->lengths,
                       "Tokens of a text, with the question and without the answer; may be given again")
          ->again()
          ->default_str("512"),
      Rule<int32_t>{.low = 1});
  check_number(
      verb->add_option("--depths", flags->depths,
                       "Where the fact stands: 0 at the beginning, 1 right before the question; may be "
                       "given again")
          ->again()
          ->default_str("0, 0.25, 0.5, 0.75 and 1"),
      Rule<double>{.low = 0, .high = 1});
  add_head_change_flags(*verb, flags->changes, "decoder.3.self_attention.1");
  add_limit_flags(*verb);
  group_flags(*verb, "Retrieval", {"--needles", "--filler", "--lengths", "--depths"});
  rare_flags(*verb, {"--text-tokens"});
  verb->footer(
      "Example:\n"
      "  multihead heads retrieval smollm2.gguf\n"
      "  multihead heads retrieval smollm2.gguf --lengths 256 --lengths 2048 \\\n"
      "    --depths 0.5 --needles facts.tsv --filler essays.txt\n"
      "  multihead heads retrieval smollm2.gguf --answers greedy --json\n"
      "  multihead heads retrieval smollm2.gguf --limit answer --sinks 4 --window 64\n"
      "  multihead heads retrieval smollm2.gguf --limit all --by-group \\\n"
      "    --heads 'decoder.20.self_attention.*'");
  verb->callback([flags] { run_retrieval(*flags); });
}

}  // namespace mh::cli
