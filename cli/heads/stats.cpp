// multihead heads stats: entropy, distance, sinks, roles and patterns of every head on a corpus.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/heads_report.h"
#include "cli/load_model.h"
#include "cli/verb.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/measures_json.h"

namespace mh::cli {
namespace {

std::string role_of(const HeadStats& head) {
  const auto role = head.role();
  return role ? std::string(name_of(*role)) : "";
}

/// Short enough for 80 columns.
std::string_view pattern_of(const HeadStats& head) {
  const auto pattern = head.roles.pattern();
  if (!pattern) return "";
  if (*pattern == AttentionPattern::kBoth) return "vert+diag";
  return *pattern == AttentionPattern::kHeterogeneous ? "heterog." : name_of(*pattern);
}

std::string line_of(const HeadStats& head) {
  const HeadFigures& of = head.figures;
  constexpr size_t kHere = HeadFigures::kReach;
  const auto optional_percent = [](const std::optional<double>& share) {
    return share ? fmt::format("{}", whole_percent(*share)) : std::string("-");
  };
  std::string line = fmt::format("{:>4}{:>5.2f}{:>4}{:>6.1f}", of.head, of.entropy,
                                 whole_percent(of.entropy_share), of.distance);
  for (const size_t at : {kHere - 1, kHere, kHere + 1})
    line += fmt::format("{:>4}", whole_percent(of.at_offset[at]));
  line += fmt::format("{:>4}{:>4}{:>5}", whole_percent(of.on_first), whole_percent(of.on_separators),
                      optional_percent(head.roles.on_rarest));
  if (head.repeated)
    line += fmt::format("{:>5}{:>4}", whole_percent(head.repeated->previous_token),
                        whole_percent(head.repeated->induction));
  line += fmt::format("  {:<10}{}", pattern_of(head), role_of(head));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string stats_table(const StatsReport& report) {
  std::string text = what_was_read(report.read);
  std::string attention;
  bool repeated = false;
  for (const HeadStats& head : report.heads) {
    if (head.figures.attention != attention) {
      attention = head.figures.attention;
      repeated = head.repeated.has_value();
      text += fmt::format("\n{}\nhead nats   %  dist  -1   0  +1 1st sep rare{}  pattern   role\n", attention,
                          repeated ? " prev ind" : "");
    }
    text += line_of(head);
  }
  return text + "\n" +
         wrapped(fmt::format(
             "nats, %: entropy of a query's weights, and in % of the largest possible; dist: mean |query - "
             "key| in "
             "tokens; the rest in %: weight on the keys at -1, 0 and +1, on the first token, on other "
             "special "
             "tokens; rare: queries that read most the sentence's rarest word{}. docs/heads/stats.md says "
             "what "
             "patterns and roles are.",
             repeated
                 ? "; prev, ind: weight on the token before, and on the token after the same one earlier, on "
                   "repeated random tokens"
                 : ""));
}

}  // namespace

void add_heads_stats(Verb& heads) {
  struct Flags {
    ReportFlags<ObserveHeadsOptions> report = {};
    CorpusFlags corpus = {};
  };
  auto flags = std::make_shared<Flags>();
  Verb* verb =
      heads.add_subcommand("stats", "Entropy, distance, sinks, roles and patterns of every head on a corpus");
  flags->report.add(*verb);
  add_corpus_flags(*verb, flags->corpus, {.pairs = true});
  verb->footer(
      "Example:\n"
      "  multihead heads stats minilm -i corpus.txt\n"
      "  multihead heads stats demo -i test.en --target test.de");
  verb->callback([flags] {
    ObserveHeadsOptions options = flags->report.settings.given();
    CorpusRun run(load_model(flags->report.model_to_run()), flags->corpus);
    run.attach(options);
    flags->report.write(heads_stats(run.folder(), run.corpus(), options), options, stats_json, stats_table);
  });
}

}  // namespace mh::cli
