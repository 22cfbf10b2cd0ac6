// Withdrawn results: every report says in one line why, and nothing else; the published pages are what this
// version draws from the published reports.
#include "lab/studies/withdrawn.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lab/studies/arms.h"
#include "lab/studies/report.h"
#include "lab/studies/study.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// What the withdrawn results said.
constexpr const char* kStatements[] = {"Splitting the input instead",
                                       "costs quality",
                                       "go on differing",
                                       "nothing makes different heads equal",
                                       "worse than projecting",
                                       "segments are worse",
                                       "Every cut loses",
                                       "used less of it",
                                       "do not need all of",
                                       "from a verb to its object",
                                       "free ones are better",
                                       "as good as the one"};

StudyReport report_of(Claim claim) {
  StudyReport report;
  report.name = "a-study";
  report.question = "why?";
  report.answer = "so";
  report.command = "multihead study";
  report.machine = "here";
  report.claims = {std::move(claim)};
  return report;
}

/// A report that was kept before its claims were withdrawn.
StudyReport kept_report(const Study& study) {
  StudyReport report = report_of({});
  report.name = study.name;
  report.conclusion = "an old conclusion";
  report.claims.clear();
  const auto add = [&](std::string_view id) {
    report.claims.push_back({.id = std::string(id),
                             .statement = "an old statement",
                             .measured = "12.5 of 37",
                             .verdict = Verdict::kPass,
                             .tables = {{"a table", {"loss"}, {{"0.125"}}}}});
  };
  for (const AlgebraCheck& check : study.algebra) add(check.id);
  for (const TrainedCheck& check : study.trained) add(check.id);
  return report;
}

TEST(Withdrawn, EachPrintsItsLineAndNothingElse) {
  ASSERT_FALSE(withdrawn_results().empty());
  for (const WithdrawnResult& result : withdrawn_results()) {
    SCOPED_TRACE(std::string(result.claim));
    const StudyReport report = report_of(withdrawn_claim(result));
    const std::string reason(result.reason), id(result.claim);
    EXPECT_EQ(report_for_terminal(report), "why?\n\n" + wrapped(id + " Withdrawn: " + reason) + "\n");
    const MarkdownReport page = report_as_markdown(report);
    EXPECT_TRUE(page.plots.empty());
    EXPECT_EQ(page.text,
              "# why?\n\nso\n\n1 claim: 0 pass, 0 fail, 0 undecided, 0 measured without a prediction, 1 "
              "withdrawn. Repeat with `multihead study`\n(here).\n\n| claim | verdict | the original "
              "statement |\n|---|---|---|\n| " +
                  id + " | WITHDRAWN | |\n\n## " + id + " WITHDRAWN\n\n" +
                  wrapped("Withdrawn: " + reason, "", 118) + "\n");
    const auto claim = nlohmann::json::parse(to_json(report))["claims"][0];
    const auto expected = nlohmann::json{{"id", id},
                                         {"statement", ""},
                                         {"original_words", ""},
                                         {"original_statement", "not made"},
                                         {"measured", ""},
                                         {"tolerance", ""},
                                         {"verdict", "WITHDRAWN"},
                                         {"trained", true},
                                         {"tables", nlohmann::json::array()},
                                         {"plots", nlohmann::json::array()},
                                         {"withdrawn", reason}};
    EXPECT_EQ(claim, expected);
  }
}

TEST(Withdrawn, IsOfAStudyAndNotRun) {
  const test::ScratchFolder folder;
  int steps = 0;
  ArmRunner::Options options{.size = StudySize::kQuick, .runs = folder.path() / "runs"};
  options.watcher.step = [&](const std::string&) { ++steps; };
  ArmRunner runner(options);
  for (const WithdrawnResult& result : withdrawn_results()) EXPECT_NO_THROW(find_study(result.study));
  // These three leave algebra alone: nothing is trained.
  for (const auto& [study, number, id] :
       {std::tuple("split-or-project", "000.7", "000.7"), std::tuple("diversity", "001.2", "001.2, trained"),
        std::tuple("diversity", "001.4", "001.4, trained")}) {
    const StudyReport report = run_study(find_study(study), runner, {number});
    EXPECT_EQ(report.claims.back().id, id);
    EXPECT_EQ(report.claims.back().verdict, Verdict::kWithdrawn);
    EXPECT_EQ(report.count(Verdict::kWithdrawn), 1) << id;
    EXPECT_EQ(report.count(Verdict::kPass), static_cast<int>(report.claims.size()) - 1);
  }
  EXPECT_EQ(steps, 0);
  EXPECT_TRUE(fs::is_empty(folder.path() / "runs"));
}

TEST(Withdrawn, NoAnswerOrConclusionLeansOnThem) {
  for (const Study& study : studies()) {
    for (const Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kUndecided}) {
      StudyReport report = kept_report(study);
      for (Claim& claim : report.claims) claim.verdict = verdict;
      report = redrawn(report);
      for (const char* statement : kStatements)
        EXPECT_THAT(report.answer + " " + report.conclusion, Not(HasSubstr(statement))) << study.name;
    }
  }
}

TEST(Redrawn, TakesThePlaceOfWhatWasSaid) {
  const StudyReport report = redrawn(kept_report(find_study("split-or-project")));
  EXPECT_EQ(report.count(Verdict::kWithdrawn), 1);
  EXPECT_THAT(report.conclusion, HasSubstr("Every head here reads the whole row"));
  for (const Claim& claim : report.claims) {
    const bool withdrawn = claim.id == "000.7";
    EXPECT_EQ(claim.verdict == Verdict::kWithdrawn, withdrawn) << claim.id;
    EXPECT_EQ(claim.measured, withdrawn ? "" : "12.5 of 37");
    EXPECT_EQ(claim.tables.size(), withdrawn ? 0u : 1u);
  }
}

TEST(Redrawn, LeavesAReportOfSomeClaimsAReportOfThese) {
  StudyReport kept = kept_report(find_study("diversity"));
  kept.conclusion.clear();
  std::erase_if(kept.claims, [](const Claim& claim) { return !claim.id.starts_with("001.4"); });
  ASSERT_EQ(kept.claims.size(), 2u);
  const StudyReport report = redrawn(kept);
  ASSERT_EQ(report.claims.size(), 2u);
  EXPECT_EQ(report.claims[0].measured, "12.5 of 37");
  EXPECT_EQ(report.claims[1].verdict, Verdict::kWithdrawn);
  EXPECT_EQ(report.conclusion, "");
}

TEST(Redrawn, SaysWhatIsMissing) {
  StudyReport kept = kept_report(find_study("one-product"));
  kept.claims.pop_back();
  try {
    redrawn(kept);
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_STREQ(error.what(), "the report of one-product has no claim 004.6; run the study again");
  }
  kept.name = "two-products";
  EXPECT_THROW(redrawn(kept), UsageError);
}

/// Without the lines that say what is withdrawn.
std::string without_withdrawn(std::string page) {
  for (const WithdrawnResult& result : withdrawn_results()) {
    const std::string line = wrapped("Withdrawn: " + std::string(result.reason), "", 118);
    const size_t at = page.find(line);
    if (at != std::string::npos) page.erase(at, line.size());
  }
  return page;
}

class PublishedPages : public testing::TestWithParam<const char*> {};

TEST_P(PublishedPages, AreWhatIsDrawnOfTheirReports) {
  const fs::path folder = fs::path(MULTIHEAD_SOURCE) / "docs" / GetParam();
  std::set<std::string> plots, drawn;
  int pages = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".svg") plots.insert(entry.path().filename());
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().string());
    const std::string text = read_file(entry.path());
    StudyReport kept;
    from_json(kept, text, entry.path().string());
    const StudyReport report = redrawn(kept);
    EXPECT_TRUE(to_json(report) == text) << "run: multihead study --redraw --out " << folder;
    const MarkdownReport page = report_as_markdown(report);
    fs::path file = entry.path();
    const std::string published = read_file(file.replace_extension(".md"));
    EXPECT_TRUE(page.text == published);
    for (const char* statement : kStatements)
      EXPECT_THAT(without_withdrawn(published), Not(HasSubstr(statement)));
    for (const auto& [name, svg] : page.plots) {
      drawn.insert(name);
      EXPECT_TRUE(svg == read_file(folder / name)) << name;
    }
    ++pages;
  }
  EXPECT_GT(pages, 1);
  EXPECT_EQ(plots, drawn);
}

INSTANTIATE_TEST_SUITE_P(Docs, PublishedPages, testing::Values("answers", "answers/paper"));

TEST(PublishedIndex, ClaimsNothingWithdrawn) {
  const std::string page = read_file(fs::path(MULTIHEAD_SOURCE) / "docs/answers/README.md");
  for (const char* statement : kStatements) EXPECT_THAT(page, Not(HasSubstr(statement)));
  for (const char* figure : {"0.187", "0.123", "0.148", "3.1 BLEU"})
    EXPECT_THAT(page, Not(HasSubstr(figure)));
}

}  // namespace
}  // namespace mh
