// multihead heads where: evidence over a corpus of what heads do.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/heads/corpus_flags.h"
#include "cli/heads/heads_report.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/heads/where_report.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/reports/where_json.h"

namespace mh::cli {
namespace {

struct WhereFlags {
  CorpusFlags corpus = {};
  ReportFlags<WhereOptions> settings = {};
  std::vector<std::string> heads = {};
  bool all = false;
};

void run_where(const WhereFlags& flags) {
  if (flags.heads.empty() && !flags.all)
    throw UsageError(
        "name a head, such as encoder.3.self_attention.1 or 'encoder.3.self_attention.*', or give --all");
  if (!flags.heads.empty() && flags.all)
    throw UsageError(
        fmt::format("give --all or heads, not both: leave out --all or {}", flags.heads.front()));
  WhereOptions options = flags.settings.given();
  for (const std::string& head : flags.heads) options.heads.emplace_back(head);
  CorpusRun run(flags.corpus);
  const WhereReport report = heads_where(run.folder(), run.corpus(), options, run.options());
  if (flags.corpus.json)
    return write_text(flags.corpus.output,
                      flags.settings.with_options(where_json(report, flags.corpus.model), options));
  const bool colours =
      flags.corpus.output.empty() && picture_options().cells == HeatMapOptions::Cells::kColours;
  write_text(flags.corpus.output, flags.all ? evidence_table(report) : evidence_pages(report, colours));
}

}  // namespace

void add_heads_where(Verb& heads) {
  auto flags = std::make_shared<WhereFlags>();
  Verb* verb =
      heads.add_subcommand("where", "Where heads are most sure: sentences, frequent tokens, heads alike");
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  verb->add_option("HEAD,--head", flags->heads,
                   "Head, e.g. encoder.3.self_attention.1, or several: 'encoder.3.self_attention.*'; "
                   "may be given again")
      ->again();
  verb->add_flag("--all", flags->all, "All heads, a line each");
  flags->settings.add(*verb);
  name_values(*verb, "HEAD", {"--head"});
  verb->footer(
      "Example:\n"
      "  multihead heads where minilm encoder.3.self_attention.1 -i corpus.txt\n"
      "  multihead heads where demo --all -i test.en --target test.de --json");
  verb->callback([flags] { run_where(*flags); });
}

}  // namespace mh::cli
