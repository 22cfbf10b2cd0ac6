// multihead heads circuit: a small set of edges between heads and layers that decides between two answers.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/file_endings.h"
#include "cli/head_changes.h"
#include "cli/heads/circuit_report.h"
#include "cli/heads/heads_verbs.h"
#include "cli/heads/pair_flags.h"
#include "cli/heads/report_flags.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "multihead/base/error.h"
#include "multihead/heads/circuit/heads_circuit.h"
#include "multihead/heads/reports/circuit_json.h"
#include "multihead/heads/reports/pictures/draw_circuit.h"
#include "multihead/io/cut_at.h"
#include "multihead/io/lines.h"

namespace mh::cli {
namespace {

struct CircuitFlags {
  ReportFlags<CircuitOptions> report = {};
  PairFlags pair = {};
  std::string input = {}, svg = {};
  HeadChangeFlags changes = {};
  int64_t shown = 20;
};

/// "CLEAN<tab>CORRUPT<tab>ANSWER<tab>WRONG", perhaps with a fifth column, the prefix.
PatchQuestion pair_in_line(const std::string& line, const std::string& where, const PatchQuestion& all) {
  const std::vector<std::string_view> columns = cut_at(line, '\t');
  if (columns.size() < 4 || columns.size() > 5) {
    throw FormatError(
        fmt::format("{}: {} columns; expected a clean text, a corrupt one, an answer and a wrong one, "
                    "then perhaps a prefix, between tabs",
                    where, columns.size()));
  }
  PatchQuestion one = all;
  one.clean = columns[0];
  one.corrupt = columns[1];
  one.answer = columns[2];
  one.wrong = columns[3];
  if (columns.size() > 4) one.prefix = columns[4];
  return one;
}

void check_one_way(const CircuitFlags& flags) {
  const bool several = !flags.input.empty();
  for (const Flag* flag : flags.pair.needed()) {
    const bool given = flag->count() > 0;
    if (several && given) {
      throw UsageError(
          fmt::format("{} belongs to one pair; in the file each line has its own", flag->get_name()));
    }
    if (!several && !given) {
      throw UsageError(
          fmt::format("{} is missing; give --clean, --corrupt, --answer and --wrong, or -i with a pair "
                      "on each line",
                      flag->get_name()));
    }
  }
}

void run_circuit(const CircuitFlags& flags) {
  check_one_way(flags);
  const PatchQuestion question = flags.pair.given();
  CircuitOptions options = flags.report.settings.given();
  ChangedHeads changed = changed_heads(flags.changes);
  options.sites = changed.sites();
  options.remark = [](const std::string& line) { remark(line); };
  std::string doing;
  std::optional<Progress> progress;
  options.progress = [&](const CircuitProgress& of) {
    if (doing != of.verb) {
      if (progress) progress->clear();
      progress.emplace(doing = of.verb, of.things);
      if (of.all > 0) progress->expect(of.all);
    }
    progress->show(of.done);
  };
  std::optional<LineReader> lines;
  if (!flags.input.empty()) lines.emplace(flags.input, text_limits());
  std::vector<std::string> block;
  size_t at = 0;
  int64_t number = 0;
  const auto next = [&]() -> std::optional<PatchQuestion> {
    ++number;
    if (!lines) return number == 1 ? std::optional(question) : std::nullopt;
    if (at == block.size()) {
      block = lines->next({.max_lines = 1000});
      at = 0;
    }
    if (block.empty()) return std::nullopt;
    return pair_in_line(block[at++], fmt::format("{}:{}", flags.input, number), question);
  };
  const ScoredModel model = load_scored(flags.report.model_to_run());
  changed.check(model.folder());
  const CircuitReport found = heads_circuit(model, next, options);
  if (progress) progress->clear();
  if (!flags.svg.empty()) write_text(flags.svg, draw_circuit(found));
  flags.report.write(found, options, circuit_json,
                     [&](const CircuitReport& circuit) { return circuit_tables(circuit, flags.shown); });
}

}  // namespace

void add_heads_circuit(Verb& heads) {
  auto flags = std::make_shared<CircuitFlags>();
  Verb* verb = heads.add_subcommand(
      "circuit", "A small set of edges between heads and layers that decides between two answers");
  flags->report.add(*verb, "Write JSON, all edges of the circuit, instead of tables");
  flags->pair.add(*verb);
  verb->add_option("-i,--input", flags->input,
                   "Pairs, one a line: clean text, corrupt text, answer and wrong one between tabs, then "
                   "perhaps a prefix");
  add_number(*verb, "--strongest", flags->shown, {.low = 0, .high = 1000000},
             "How many edges of each table are listed");
  expect_ending(add_output_flag(*verb, "--svg", flags->svg, "Draw the circuit as an SVG picture"), ".svg",
                "an SVG picture");
  add_limit_flags(*verb);
  add_head_change_flags(*verb, flags->changes);
  name_values(*verb, "FILE", {"--svg", "--input"});
  rare_flags(*verb, {"--strongest"});
  verb->footer(
      "Example:\n"
      "  multihead heads circuit smollm2.gguf -i pairs.tsv --svg circuit.svg\n"
      "  multihead heads circuit smollm2.gguf --clean 'The capital of France is' \\\n"
      "    --corrupt 'The capital of Italy is' --answer Paris --wrong Rome --share 0.9\n"
      "  multihead heads circuit demo --clean 'the small dog sees a cat .' \\\n"
      "    --corrupt 'the small cat sees a cat .' --answer Hund --wrong Katze \\\n"
      "    --prefix 'der kleine'\n"
      "  multihead heads circuit minilm --clean 'two dogs run .' \\\n"
      "    --corrupt 'two cats run .' --answer 'dogs' --wrong 'cats'");
  verb->callback([flags] { run_circuit(*flags); });
}

}  // namespace mh::cli
