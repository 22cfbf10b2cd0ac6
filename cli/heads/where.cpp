// multihead heads where: evidence over a corpus of what heads do.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/heads/corpus_flags.h"
#include "cli/heads/heads_report.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/where_report.h"
#include "cli/help_format.h"
#include "cli/options.h"
#include "multihead/base/error.h"
#include "multihead/heads/where_heads.h"
#include "multihead/heads/where_json.h"

namespace mh::cli {
namespace {

struct WhereFlags {
  CorpusFlags corpus = {};
  EvidenceOptions options = {};
  std::vector<std::string> heads = {};
  bool all = false;
};

void run_where(WhereFlags& flags) {
  if (flags.heads.empty() && !flags.all)
    throw UsageError(
        "name a head, such as encoder.3.self_attention.1 or 'encoder.3.self_attention.*', or give --all");
  if (!flags.heads.empty() && flags.all)
    throw UsageError(fmt::format("--all are all heads; leave it out, or {}", flags.heads.front()));
  for (const std::string& head : flags.heads) flags.options.heads.emplace_back(head);
  CorpusRun run(flags.corpus);
  const HeadEvidenceReport report = head_evidence(run.folder(), run.corpus(), flags.options, run.options());
  if (flags.corpus.json) return write_text(flags.corpus.output, where_json(report, flags.corpus.model));
  const bool colours =
      flags.corpus.output.empty() && picture_options().cells == HeatMapOptions::Cells::kColours;
  write_text(flags.corpus.output, flags.all ? evidence_table(report) : evidence_pages(report, colours));
}

}  // namespace

void add_heads_where(CLI::App& heads) {
  auto flags = std::make_shared<WhereFlags>();
  CLI::App* verb =
      heads.add_subcommand("where", "Where heads are most sure: sentences, frequent tokens, heads alike");
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  verb->add_option("HEAD,--head", flags->heads,
                   "Head, e.g. encoder.3.self_attention.1, or several: 'encoder.3.self_attention.*'; "
                   "may be given again")
      ->take_all()
      ->allow_extra_args(false);
  verb->add_flag("--all", flags->all, "All heads, a line each");
  add_number(*verb, "--sentences", flags->options.sentences, {.low = 0, .high = 1000},
             "Strongest sentences of a head");
  add_number(*verb, "--usual", flags->options.usual, {.low = 0, .high = 1000},
             "Sentences of about the median strength");
  add_number(*verb, "--tokens", flags->options.tokens, {.low = 0, .high = 1000},
             "Key tokens and query tokens that stand out most");
  add_number(*verb, "--least-count", flags->options.least_count, {.low = 1},
             "Leave tokens out that occur less often in the corpus");
  add_number(*verb, "--sure", flags->options.sure, {.low = 0, .high = 1},
             "A query is sure when its largest weight is at least this");
  add_number(*verb, "--alike", flags->options.alike, {.low = 0, .high = 1000},
             "Heads that choose the same keys most often");
  name_values(*verb, "HEAD", {"--head"});
  rare_flags(*verb, {"--least-count", "--sure", "--alike"});
  verb->footer(
      "Example:\n"
      "  multihead heads where minilm encoder.3.self_attention.1 -i corpus.txt\n"
      "  multihead heads where demo --all -i test.en --target test.de --json");
  verb->callback([flags, verb] {
    refuse_flags_of_heads(*verb);
    run_where(*flags);
  });
}

}  // namespace mh::cli
