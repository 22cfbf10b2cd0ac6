// multihead heads where: evidence over a corpus of what heads do.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/heads/where_report.h"
#include "cli/heads_report.h"
#include "cli/load_model.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/reports/where_json.h"

namespace mh::cli {
namespace {

struct WhereFlags {
  ReportFlags<WhereOptions> report = {};
  CorpusFlags corpus = {};
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
  WhereOptions settings = flags.report.settings.given();
  for (const std::string& head : flags.heads) settings.evidence.heads.emplace_back(head);
  CorpusRun run(load_model(flags.report.model_to_run()), flags.corpus);
  run.attach(settings.read);
  const bool colours =
      flags.report.output.empty() && picture_options().cells == HeatMapOptions::Cells::kColours;
  flags.report.write(heads_where(run.folder(), run.corpus(), settings), settings, where_json,
                     [&](const WhereReport& found) {
                       return flags.all ? evidence_table(found) : evidence_pages(found, colours);
                     });
}

}  // namespace

void add_heads_where(Verb& heads) {
  auto flags = std::make_shared<WhereFlags>();
  Verb* verb = heads.add_subcommand(
      "where", "Where a head is most sure of what it reads: sentences, tokens, heads that read the same");
  flags->report.add(*verb);
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  verb->add_option("HEAD,--head", flags->heads,
                   "Head, e.g. encoder.3.self_attention.1, or several: 'encoder.3.self_attention.*'; "
                   "may be given again")
      ->again();
  verb->add_flag("--all", flags->all, "All heads, a line each");
  name_values(*verb, "HEAD", {"--head"});
  verb->footer(
      "Example:\n"
      "  multihead heads where minilm encoder.3.self_attention.1 -i corpus.txt\n"
      "  multihead heads where demo --all -i test.en --target test.de --json");
  verb->callback([flags] { run_where(*flags); });
}

}  // namespace mh::cli
