// Reports that were kept: what this version says of their figures, and that the published pages are what it draws
// from the published reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "lab/studies/arms.h"
#include "lab/studies/report.h"
#include "lab/studies/study.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"
#include "tests/support/places.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// All claims of a study, with as many clauses as its answers ask for, as an earlier version kept them.
StudyReport kept_report(const Study& study, Verdict verdict) {
  StudyReport report;
  report.name = study.name;
  report.question = "an old question";
  report.whole = true;
  report.answer = "an old answer";
  const auto add = [&](std::string_view id) {
    Claim claim{.id = std::string(id),
                .statement = "A statement.",
                .clauses = {{.statement = "A clause.", .measured = "12.5 of 37", .verdict = verdict}},
                .tables = {{"a table", {"loss"}, {{"0.125"}}}}};
    for (const auto& sentences : {study.answer, study.alone}) {
      for (const Sentence& sentence : sentences) {
        if (sentence.claim == id)
          claim.clauses.resize(std::max(claim.clauses.size(), sentence.clause + 1), claim.clauses.front());
      }
    }
    report.claims.push_back(std::move(claim));
  };
  for (const AlgebraCheck& check : study.algebra) add(check.id);
  for (const TrainedCheck& check : study.trained) add(check.id);
  return report;
}

TEST(Redrawn, SaysWhatThisVersionSaysAndKeepsFigures) {
  for (const Study& study : studies()) {
    SCOPED_TRACE(std::string(study.name));
    const StudyReport kept = kept_report(study, Verdict::kFail), report = redrawn(kept);
    EXPECT_EQ(report.question, study.question);
    EXPECT_EQ(report.answer, answer_of(study.answer, kept.claims));
    EXPECT_EQ(report.picture, study.picture);
    ASSERT_EQ(report.claims.size(), kept.claims.size());
    for (const Claim& claim : report.claims) {
      EXPECT_EQ(claim.verdict, Verdict::kFail) << claim.id << " follows from its clauses";
      EXPECT_EQ(claim.clauses[0].measured, "12.5 of 37");
      EXPECT_EQ(claim.tables.size(), 1u);
    }
  }
}

TEST(Redrawn, SaysOfSomeClaimsWhatStandsAlone) {
  StudyReport kept = kept_report(find_study("diversity"), Verdict::kPass);
  kept.whole = false;
  std::erase_if(kept.claims, [](const Claim& claim) { return !claim.id.starts_with("001.4"); });
  const size_t claims = kept.claims.size();
  ASSERT_GT(claims, 0u);
  const StudyReport report = redrawn(kept);
  EXPECT_EQ(report.answer,
            "Heads that read contiguous segments of the embedding were worse than heads that project the "
            "whole.");
  EXPECT_EQ(report.claims.size(), claims);
}

TEST(Redrawn, SaysWhatIsMissing) {
  const Study& study = find_study("one-product");
  StudyReport kept = kept_report(study, Verdict::kPass);
  ASSERT_FALSE(study.answer.empty());
  const std::string needed(study.answer.front().claim);
  std::erase_if(kept.claims, [&](const Claim& claim) { return claim.id == needed; });
  try {
    redrawn(kept);
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("one-product"), HasSubstr(needed)));
  }
  kept.name = "two-products";
  EXPECT_THROW(redrawn(kept), UsageError);
}

class PublishedPages : public testing::TestWithParam<const char*> {};

TEST_P(PublishedPages, AreWhatIsDrawnOfTheirReports) {
  const fs::path folder = fs::path(source_folder()) / "docs/answers/evidence" / GetParam();
  ASSERT_TRUE(fs::exists(folder)) << folder;
  std::set<std::string> plots, drawn;
  int pages = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".svg") plots.insert(entry.path().filename());
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().string());
    const std::string text = read_file(entry.path());
    StudyReport kept;
    ASSERT_NO_THROW(from_json(kept, text, entry.path().string()));
    const StudyReport report = redrawn(kept);
    EXPECT_TRUE(to_json(report) == text) << "run: multihead study --redraw --out " << folder;
    const MarkdownReport page = report_as_markdown(report);
    fs::path file = entry.path();
    EXPECT_TRUE(page.text == read_file(file.replace_extension(".md")));
    for (const auto& [name, svg] : page.plots) {
      drawn.insert(name);
      EXPECT_TRUE(svg == read_file(folder / name)) << name;
    }
    ++pages;
  }
  EXPECT_GT(pages, 0);
  EXPECT_EQ(plots, drawn);
}

INSTANTIATE_TEST_SUITE_P(Docs, PublishedPages, testing::Values("", "minilm", "paper"));

// 002.6 of the real all-MiniLM-L6-v2: the page's tensors, counts and verdicts, and rounding as small as its own.
TEST(MiniLmPage, HasTheFiguresOfTheModel) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr)
    GTEST_SKIP() << "set MULTIHEAD_MODELS to what scripts/models prints: MiniLM is needed";
  const fs::path file = fs::path(source_folder()) / "docs/answers/evidence/minilm/two-matrices-or-one.json";
  StudyReport kept;
  from_json(kept, read_file(file), file.string());
  ArmRunner runner({.checkpoint = fs::path(models) / "minilm"});
  const StudyReport found = run_study(find_study("two-matrices-or-one"), runner, {"002.6"});
  ASSERT_EQ(found.claims.size(), kept.claims.size());
  const Claim &now = found.claims.back(), &then = kept.claims.back();
  EXPECT_EQ(then.id, "002.6, loaded");
  EXPECT_EQ(now.statement, then.statement);
  ASSERT_EQ(then.tables.size(), 1u);
  EXPECT_EQ(now.tables.at(0).caption, then.tables[0].caption);
  EXPECT_EQ(now.tables.at(0).rows, then.tables[0].rows);
  ASSERT_EQ(now.clauses.size(), then.clauses.size());
  const auto without_rounding = [](const std::string& measured) {
    return std::regex_replace(measured, std::regex("[0-9.]+e-[0-9]+"), "tiny");
  };
  for (size_t i = 0; i < now.clauses.size(); ++i) {
    EXPECT_EQ(then.clauses[i].verdict, Verdict::kPass);
    EXPECT_EQ(now.clauses[i].verdict, Verdict::kPass);
    EXPECT_EQ(now.clauses[i].statement, then.clauses[i].statement);
    EXPECT_EQ(without_rounding(now.clauses[i].measured), without_rounding(then.clauses[i].measured));
  }
  EXPECT_THAT(then.clauses.back().measured,
              HasSubstr("6 layers: 24 matrices, 24 biases, 0 others; 72 heads"));
}

}  // namespace
}  // namespace mh
