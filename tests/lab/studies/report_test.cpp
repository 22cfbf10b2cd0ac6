// The report for a terminal: nothing beyond 80 columns, and nothing lost to that.
#include "lab/studies/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "multihead/analysis/heat_map.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

StudyReport report_of(Table table) {
  StudyReport report;
  report.question = "why?";
  report.claims = {{.id = "1", .statement = "so", .measured = "1.0", .tables = {std::move(table)}}};
  return report;
}

void expect_lines_fit(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
}

TEST(TerminalReport, LeavesTablesThatFitAsTheyAre) {
  const std::string text =
      report_for_terminal(report_of({"", {"arm of some words", "loss"}, {{"one", "0.1"}}}));
  EXPECT_THAT(text, HasSubstr("\n      arm of some words  loss\n      one                 0.1\n"));
}

TEST(TerminalReport, BreaksHeadingsAndThenWordsOfWideTables) {
  const std::string figures = "0.345 ± 0.678";
  const std::string text = report_for_terminal(
      report_of({"a caption",
                 {"arm", "first heading", "second heading", "third heading", "a fourth one"},
                 {{"canonical", figures, figures, figures, figures},
                  {"5 random segments, h not dividing d", figures, figures, figures, figures}}}));
  expect_lines_fit(text);
  EXPECT_THAT(text, Not(HasSubstr("second heading")));
  EXPECT_THAT(text, HasSubstr("5 random"));
  EXPECT_THAT(text, Not(HasSubstr("5 random segments, h not dividing d")));
  for (const char* word : {"segments,", "not", "dividing"}) EXPECT_THAT(text, HasSubstr(word));
  size_t intact = 0;
  for (size_t at = text.find(figures); at != std::string::npos; at = text.find(figures, at + 1)) ++intact;
  EXPECT_EQ(intact, 8u);
}

TEST(TerminalReport, TakesTablesWithoutRowsAndRowsWithoutCells) {
  EXPECT_THAT(report_for_terminal(report_of({"", {"arm", "loss"}, {}})), HasSubstr("arm  loss\n"));
  EXPECT_THAT(report_for_terminal(report_of({"", {"arm", "loss"}, {{"one"}}})), HasSubstr("one\n"));
}

}  // namespace
}  // namespace mh
