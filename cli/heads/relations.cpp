// multihead heads relations: which head follows which grammatical relation.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/corpus_flags.h"
#include "cli/error_line.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/report_flags.h"
#include "cli/heads_report.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/measures_json.h"

namespace mh::cli {
namespace {

struct RelationsFlags {
  ReportFlags<RelationsOptions> report = {};
  CorpusFlags corpus = {};
  std::string relation = {};
  int top = 10;
};

std::string plus_minus(const Interval& interval) {
  return std::isfinite(interval.half) ? fmt::format("±{:.1f}", 100 * interval.half) : std::string("-");
}

/// "35.8 (-2)".
std::string offset_cell(const RelationScore& score) {
  return fmt::format("{:.1f} ({:+d})", 100 * score.baseline(), score.offset);
}

/// fmt counts the bytes of "±" as one column, as a terminal does.
std::string best_row(const RelationScore& score, const std::vector<RelationScore>& random) {
  const auto same = std::find_if(random.begin(), random.end(), [&](const RelationScore& other) {
    return other.relation == score.relation && other.direction == score.direction &&
           other.place.kind == score.place.kind;
  });
  return fmt::format("{:<14}{:<29}{:>6.1f}{:>6}{:>11}{:>7}{:>7}\n", cell_text(score.relation, 13),
                     score.found > 0 ? score.name() : "no head", 100 * score.score(),
                     plus_minus(score.interval), offset_cell(score),
                     same == random.end() ? "-" : fmt::format("{:.1f}", 100 * same->score()), score.support);
}

std::string best_tables(const RelationsReport& report, int64_t least_support) {
  if (report.chosen.empty())
    return "\n" + wrapped(fmt::format(
                      "No relation has {} words on each half of the sentences; give more of them, or "
                      "lower --least-support.",
                      grouped(least_support)));
  std::string text;
  for (const AttentionKind kind : {AttentionKind::kEncoderSelf, AttentionKind::kDecoderSelf}) {
    for (const Direction direction : {Direction::kToHead, Direction::kToDependent, Direction::kReadByHead}) {
      std::string rows;
      for (const RelationScore& score : report.chosen) {
        if (score.direction == direction && score.place.kind == kind) rows += best_row(score, report.random);
      }
      if (rows.empty()) continue;
      text += fmt::format("\n{}: {}\n{:<14}{:<29}{:>6}{:>6}{:>11}{:>7}{:>7}\n{}",
                          kind == AttentionKind::kEncoderSelf ? "Encoder" : "Decoder", question_of(direction),
                          "relation", "best head", "%", "", "offset %", "random", "words", rows);
    }
  }
  return text + "\n" +
         wrapped(
             "%: of the words, with the 95 % interval; offset: what attending always to the word at the best "
             "offset would get; random: the best of as many heads with random weights; all: all relations "
             "together, and the one head that is best for them. Heads and offsets are chosen on every other "
             "sentence and scored on the rest.");
}

std::string ranking(const RelationsReport& report, const std::string& relation, size_t top) {
  std::string text;
  std::set<std::string> relations;
  for (const AttentionKind kind : {AttentionKind::kEncoderSelf, AttentionKind::kDecoderSelf}) {
    for (const Direction direction : {Direction::kToHead, Direction::kToDependent, Direction::kReadByHead}) {
      std::vector<RelationScore> scores;
      for (const RelationScore& score : report.all) {
        relations.insert(score.relation);
        if (score.relation == relation && score.direction == direction && score.place.kind == kind)
          scores.push_back(score);
      }
      if (scores.empty()) continue;
      std::stable_sort(scores.begin(), scores.end(),
                       [](const RelationScore& a, const RelationScore& b) { return a.score() > b.score(); });
      text += fmt::format("\n{}: {}\n{:<36}{:>7}{:>8}{:>17}{:>8}\n", printable_line(relation),
                          question_of(direction), "head", "%", "", "over fixed offset", "");
      for (size_t i = 0; i < std::min(top, scores.size()); ++i) {
        const RelationScore& score = scores[i];
        text += fmt::format("{:<36}{:>7.1f}{:>8}{:>17.1f}{:>8}\n", score.name(), 100 * score.score(),
                            plus_minus(score.interval), 100 * score.gain(), plus_minus(score.gain_interval));
      }
      text += fmt::format("{:<36}{:>7.1f}{:>33}\n",
                          fmt::format("best fixed offset: {}", word_offset(scores[0].offset)),
                          100 * scores[0].baseline(), fmt::format("{} words", grouped(scores[0].support)));
    }
  }
  if (text.empty())
    throw UsageError(fmt::format("--relation {}: the trees have {}", relation, fmt::join(relations, ", ")));
  return text + "\n" +
         wrapped(
             "%: of the words, with the 95 % interval, over all sentences. The first of many heads is a "
             "little too "
             "high: without --relation heads are chosen on every other sentence and scored on the rest.");
}

std::string probe_lines(const RelationsReport& report) {
  if (!report.probe) return "";
  std::string text =
      fmt::format("\nAttention-only probe: {:.1f} % of {} words have their head in the best tree",
                  100 * report.probe->score(), grouped(report.probe->words));
  if (report.random_probe)
    text += fmt::format("; {:.1f} % with random weights", 100 * report.random_probe->score());
  return wrapped(text.substr(1) + ".").insert(0, "\n");
}

void run_relations(const RelationsFlags& flags) {
  if (flags.corpus.conllu.empty() && flags.corpus.target_conllu.empty())
    throw UsageError("relations are those of dependency trees: give --conllu FILE");
  RelationsOptions options = flags.report.settings.given();
  CorpusRun run(load_model(flags.report.model_to_run()), flags.corpus);
  run.attach(options.observe);
  if (!flags.relation.empty()) options.random = false;
  flags.report.write(heads_relations(run.folder(), run.corpus(), options), options, relations_json,
                     [&](const RelationsReport& found) {
                       return counted(found.read.sentences, "sentence") + "\n" +
                              (flags.relation.empty()
                                   ? best_tables(found, options.least_support)
                                   : ranking(found, flags.relation, static_cast<size_t>(flags.top))) +
                              probe_lines(found);
                     });
}

}  // namespace

void add_heads_relations(Verb& heads) {
  auto flags = std::make_shared<RelationsFlags>();
  Verb* verb = heads.add_subcommand("relations", "Which head follows which grammatical relation");
  flags->report.add(*verb);
  add_corpus_flags(*verb, flags->corpus, {.trees = true});
  verb->add_option("--relation", flags->relation, "Rank all heads for this relation, e.g. obj")
      ->type_name("NAME");
  add_number(*verb, "--top", flags->top, {.low = 1}, "Heads of a ranking");
  rare_flags(*verb, {"--top"});
  verb->footer(
      "Example:\n"
      "  multihead heads relations minilm --conllu en_ewt-ud-dev.conllu\n"
      "  multihead heads relations minilm --conllu en_ewt-ud-dev.conllu --relation obj");
  verb->callback([flags] { run_relations(*flags); });
}

}  // namespace mh::cli
