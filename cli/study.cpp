// multihead study: the five questions, answered by running.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/options.h"
#include "cli/shell_words.h"
#include "cli/stop_signals.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "lab/studies/arms.h"
#include "lab/studies/page.h"
#include "lab/studies/report.h"
#include "lab/studies/study.h"
#include "multihead/base/file.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

struct StudyFlags {
  std::vector<std::string> names, claims;
  bool all = false, quick = false, paper = false, evidence = false, strict = false, redraw = false;
  std::string data, checkpoint, out = "study";
};

std::string list_of_studies() {
  std::string text;
  for (const Study& study : studies()) {
    text += fmt::format("{}\n{}", study.name, wrapped(std::string(study.question), "    "));
  }
  return text + "\nRun one with: multihead study NAME   (--quick: micro tasks; --all: every study)\n";
}

void write_pages(const std::filesystem::path& out, const StudyReport& report) {
  const MarkdownReport page = report_as_markdown(report);
  write_file_atomically(out / (report.name + ".json"), to_json(report));
  write_file_atomically(out / (report.name + ".md"), page.text);
  for (const auto& [name, svg] : page.plots) write_file_atomically(out / name, svg);
}

/// The pages of the studies named, or of all whose reports are in the folder, from these reports.
void redraw(const StudyFlags& flags) {
  const std::filesystem::path out = flags.out;
  bool any = false;
  for (const Study& study : studies()) {
    const std::filesystem::path file = out / fmt::format("{}.json", study.name);
    const bool named = std::find(flags.names.begin(), flags.names.end(), study.name) != flags.names.end();
    if (!named && (!flags.names.empty() || !std::filesystem::exists(file))) continue;
    StudyReport report;
    from_json(report, read_file(file), file.string());
    write_pages(out, redrawn(std::move(report)));
    if (!quiet()) to_stderr(fmt::format("  {}/{}.md and plots are drawn again\n", out.string(), study.name));
    any = true;
  }
  if (!any)
    throw FileError(fmt::format("{} has no report of a study, for example one-product.json", out.string()));
}

bool run(const StudyFlags& flags, const std::function<bool()>& stop) {
  if (flags.names.empty() && !flags.all) {
    write_text("", list_of_studies());
    return true;
  }
  std::vector<const Study*> chosen;
  if (flags.all) {
    for (const Study& study : studies()) chosen.push_back(&study);
  } else {
    for (const std::string& name : flags.names) chosen.push_back(&find_study(name));
  }
  const auto step = [](const std::string& line) {
    if (!quiet()) to_stderr("  " + line + "\n");
  };
  const std::filesystem::path out = flags.out;
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) throw FileError(fmt::format("cannot make {}: {}", out.string(), error.message()));
  ArmRunner runner({.size = flags.quick   ? StudySize::kQuick
                            : flags.paper ? StudySize::kPaper
                                          : StudySize::kStandard,
                    .data = flags.data,
                    .checkpoint = flags.checkpoint,
                    .runs = out / "runs",
                    .watcher = {.step = step, .stop = stop}});
  int failed = 0;
  for (const Study* study : chosen) {
    write_text("", page_for_terminal(study->name));
    StudyReport report = run_study(*study, runner, flags.claims, {.step = step, .stop = stop});
    report.command =
        fmt::format("multihead study {}{}{}", report.name,
                    flags.claims.empty() ? "" : fmt::format(" --claim {}", fmt::join(flags.claims, " ")),
                    flags.quick   ? " --quick"
                    : flags.paper ? " --paper --data DIR"
                                  : "");
    if (!flags.checkpoint.empty()) report.command += " --checkpoint " + shell_word(flags.checkpoint);
    write_pages(out, report);
    write_text("", (flags.evidence ? report_for_terminal(report) : summary_for_terminal(report)) +
                       (study == chosen.back() ? "" : "\n"));
    step(fmt::format("{}/{}.md has every clause with its figures, tables and plots{}", out.string(),
                     report.name, flags.evidence ? "" : "; --evidence prints them"));
    failed += report.count(Verdict::kFail);
  }
  return failed == 0;
}

}  // namespace

std::vector<std::string> study_names() {
  std::vector<std::string> names;
  for (const Study& study : studies()) names.emplace_back(study.name);
  return names;
}

void add_study(Verb& app) {
  auto flags = std::make_shared<StudyFlags>();
  Verb* verb = app.add_subcommand("study", "Five questions about heads, answered by running");
  verb->add_option("name", flags->names, "Which studies; none: list them");
  verb->add_flag("--all", flags->all, "Every study");
  verb->add_option("--claim", flags->claims, "Only these claims of it, for example 001.4");
  auto* quick = verb->add_flag("--quick", flags->quick,
                               "Micro tasks, some minutes for all; what they leave open is UNDECIDED");
  verb->add_flag("--paper", flags->paper, "On real text, hours; goes on where it was stopped")
      ->excludes(quick);
  verb->add_option("--data", flags->data,
                   "With --paper: folder of train, val and test_2016_flickr, .en.gz and .de.gz");
  verb->add_option(
      "--checkpoint", flags->checkpoint,
      "Folder of a translator or an encoder that claim 002.6 looks into, in place of a model trained here");
  verb->add_option("--out", flags->out,
                   "Folder to write: reports as Markdown and JSON, plots, runs/ of trained models");
  verb->add_flag("--evidence", flags->evidence, "Print every claim, its clauses, tables and plots");
  verb->add_flag("--strict", flags->strict, "Exit 1 when a clause of a claim fails");
  Flag* drawn =
      verb->add_flag("--redraw", flags->redraw,
                     "Run nothing: draw the pages and plots again from the reports (.json) in --out");
  for (const char* other :
       {"--all", "--quick", "--paper", "--claim", "--data", "--checkpoint", "--evidence", "--strict"})
    drawn->excludes(verb->get_option(other));
  name_values(*verb, "STUDY", {"name"});
  name_values(*verb, "CLAIM", {"--claim"});
  name_values(*verb, "DIR", {"--data", "--out"});
  name_values(*verb, "MODEL", {"--checkpoint"});
  verb->footer(
      "Example:\n  multihead study\n  multihead study one-product --quick\n  multihead study --all --quick "
      "--out study");
  verb->callback([flags] {
    for (const std::string& name : flags->names) find_study(name);
    if (flags->all && !flags->names.empty())
      throw UsageError("--all runs every study; leave out the names, or --all");
    if (!flags->claims.empty() && flags->names.size() != 1)
      throw UsageError("--claim needs the name of one study, for example: study diversity --claim 001.4");
    if (!flags->claims.empty()) check_claims(find_study(flags->names[0]), flags->claims);
    if (flags->redraw) return redraw(*flags);
    const bool right = StopSignals::stoppable([&](const auto& stop) { return run(*flags, stop); });
    if (!right && flags->strict) throw Error("a clause failed; the report says which");
  });
}

}  // namespace mh::cli
