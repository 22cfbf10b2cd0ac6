// The report of a study as a page, at a terminal, and its plots.
#include "lab/studies/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

void expect_in_order(const std::string& text, const std::vector<std::string>& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    const size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << "not there, or too early: " << part << "\n" << text;
    at = found + part.size();
  }
}

void expect_lines_fit(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
}

Plot strips(std::string title) {
  return {.title = std::move(title),
          .x_label = "loss",
          .y_label = "",
          .series = {{.name = "one", .y = {1, 2, 6}}, {.name = "a <b>", .y = {4}}},
          .kind = PlotKind::kStrips};
}

StudyReport some_report() {
  StudyReport report{.name = "a-study",
                     .question = "Is it so?",
                     .answer = "It is so.",
                     .picture = "000.7",
                     .size = "quick",
                     .command = "multihead study a-study",
                     .machine = "2 threads",
                     .seconds = 61.7};
  Claim algebra{.id = "000.1",
                .statement = "A head reads every coordinate | all of them.",
                .original_words = "\"It reads all.\" (the answer)",
                .clauses = {{.statement = "A head reads all.",
                             .asked = "24 of 24",
                             .measured = "24 of 24 read",
                             .verdict = Verdict::kPass,
                             .original = OriginalSays::kSame},
                            {.statement = "No more.",
                             .asked = "exact zeros",
                             .measured = "two are not 0",
                             .verdict = Verdict::kFail}}};
  algebra.tables.push_back({"what they read", {"head", "coordinates"}, {{"x|y", "24"}}});
  algebra.plots.push_back(strips("plot of algebra"));
  Claim trained{
      .id = "000.7",
      .statement = "Slices are worse.",
      .original_words = "\"It is split.\" (the question)",
      .original_remark = "Two things have this name.",
      .clauses = {
          {.statement = "They lose.",
           .asked = "loss: above 0",
           .measured = "0.1 ± 0.2",
           .verdict = Verdict::kUndecided,
           .kind = Evidence::kTrained,
           .original = OriginalSays::kOpposite},
          {.statement = "They take less time.", .measured = "4 s of 5 s", .kind = Evidence::kTrained}}};
  trained.plots = {strips("the picture"), strips("a second plot")};
  report.claims = {algebra, trained, {.id = "000.8", .statement = "No one spoke of this."}};
  for (Claim& claim : report.claims) settle(claim);
  return report;
}

TEST(Page, HasTheAnswerThePictureTheClausesTheOriginalsAndTheCommandInThisOrder) {
  const MarkdownReport page = report_as_markdown(some_report());
  expect_in_order(
      page.text,
      {"# Is it so?\n\nIt is so.\n\n![the picture](a-study-000.7-1.svg)\n\n"
       "4 clauses: 1 pass, 1 fail, 1 undecided, 1 measured without a prediction.\n\n",
       "| 000.1 A head reads every coordinate \\| all of them. | algebra | FAIL | right |\n"
       "| 000.7 Slices are worse. | trained | UNDECIDED | left open |\n"
       "| 000.8 No one spoke of this. | algebra | MEASURED | not made |\n\n",
       "## 000.1 FAIL, algebra\n\nA head reads every coordinate | all of them.\n\n",
       "- **(a) PASS** (algebra). A head reads all.\n  - Asked: 24 of 24\n  - Measured: 24 of 24 read\n"
       "- **(b) FAIL** (algebra). No more.\n  - Asked: exact zeros\n  - Measured: two are not 0\n\n",
       "what they read:\n\n| head | coordinates |\n|---|---:|\n| x\\|y | 24 |\n",
       "![plot of algebra](a-study-000.1-1.svg)", "## 000.7 UNDECIDED, trained\n\nSlices are worse.\n\n",
       "- **(a) UNDECIDED** (trained). They lose.\n  - Asked: loss: above 0\n  - Measured: 0.1 ± 0.2\n"
       "- **(b) MEASURED** (trained). They take less time.\n  - Measured: 4 s of 5 s\n\n",
       "![a second plot](a-study-000.7-2.svg)", "## 000.8 MEASURED, algebra\n\nNo one spoke of this.\n\n",
       "## What the originals say\n\n", "**000.1** \"It reads all.\" (the answer)\n\n",
       "Right: (a) says the same and passes.\n\n", "**000.7** \"It is split.\" (the question)\n\n",
       "Left open: (a) says the opposite and is undecided. Two things have this name.\n\n",
       "Repeat with `multihead study a-study` (2 threads; 62 s).\n"});
  EXPECT_TRUE(page.text.ends_with("62 s).\n"));
}

TEST(Page, SaysWhyAClauseIsWithdrawn) {
  StudyReport report = some_report();
  Clause& clause = report.claims[1].clauses[0];
  clause.verdict = Verdict::kWithdrawn;
  clause.measured = "the scale was wrong";
  settle(report.claims[1]);
  EXPECT_THAT(
      report_as_markdown(report).text,
      AllOf(
          HasSubstr("- **(a) WITHDRAWN** (trained). They lose.\n  - Asked: loss: above 0\n  - Withdrawn: the "
                    "scale was wrong\n"),
          HasSubstr("4 clauses: 1 pass, 1 fail, 0 undecided, 1 measured without a prediction, 1 withdrawn."),
          HasSubstr("No clause of this claim decides what these words say.")));
  EXPECT_THAT(report_for_terminal(report), HasSubstr("withdrawn: the scale was wrong"));
}

TEST(Page, DrawsEachPlotOnce) {
  const MarkdownReport page = report_as_markdown(some_report());
  std::vector<std::string> files;
  for (const auto& [file, svg] : page.plots) {
    files.push_back(file);
    EXPECT_EQ(count_of(page.text, "(" + file + ")"), 1u) << file;
  }
  EXPECT_THAT(files,
              testing::ElementsAre("a-study-000.7-1.svg", "a-study-000.1-1.svg", "a-study-000.7-2.svg"));
}

TEST(Page, SaysWhatItCost) {
  StudyReport report = some_report();
  EXPECT_EQ(cost_of(report), "2 threads; 62 s");
  report.models = 1;
  report.training_seconds = 59.4;
  EXPECT_EQ(cost_of(report), "2 threads; 1 model, trained in 59 s of processor time; 62 s for the rest");
  report.models = 93;
  report.training_seconds = 1690;
  EXPECT_EQ(cost_of(report), "2 threads; 93 models, trained in 28 min of processor time; 62 s for the rest");
  report.training_seconds = 2.46 * 3600;
  EXPECT_EQ(cost_of(report),
            "2 threads; 93 models, trained in 2.5 hours of processor time; 62 s for the rest");
}

TEST(Page, NeedsNeitherPictureNorAnswerNorOriginals) {
  StudyReport report = some_report();
  report.answer = "";
  report.picture = "000.8";  // has no plot
  for (Claim& claim : report.claims) claim.original_words = "";
  const std::string text = report_as_markdown(report).text;
  EXPECT_TRUE(text.starts_with("# Is it so?\n\n4 clauses:")) << text;
  EXPECT_THAT(text, Not(HasSubstr("originals")));
  EXPECT_EQ(count_of(text, "!["), 3u);
}

TEST(Page, NamesAClaimByItsNumberAndItsFileByItsId) {
  StudyReport report = some_report();
  report.claims[1].id = report.picture = "001.2, trained";
  const MarkdownReport page = report_as_markdown(report);
  EXPECT_THAT(page.text, AllOf(HasSubstr("## 001.2 UNDECIDED, trained\n"), HasSubstr("| 001.2 Slices are"),
                               HasSubstr("(a-study-001.2--trained-1.svg)")));
}

TEST(Page, ALineBeginsNoListByChance) {
  StudyReport report = some_report();
  std::string long_one;
  for (int i = 0; i < 40; ++i) long_one += "word - ";
  report.answer = report.claims[0].clauses[0].measured = long_one;
  std::istringstream lines(report_as_markdown(report).text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) {
      EXPECT_FALSE(line.substr(begin).starts_with("- word")) << line;
    }
  }
}

TEST(TheOriginal, IsJudgedWithTheClausesThatDecide) {
  using enum OriginalSays;
  const auto said = [](const std::vector<std::pair<Verdict, OriginalSays>>& clauses) {
    Claim claim{.id = "000.1", .original_words = "words"};
    for (const auto& [verdict, original] : clauses)
      claim.clauses.push_back({.verdict = verdict, .original = original});
    settle(claim);
    return about_the_original(claim);
  };
  EXPECT_EQ(said({{Verdict::kPass, kNothing}}), "No clause of this claim decides what these words say.");
  EXPECT_EQ(said({{Verdict::kPass, kSame}, {Verdict::kFail, kNothing}, {Verdict::kPass, kSame}}),
            "Right: (a) and (c) say the same and pass.");
  EXPECT_EQ(said({{Verdict::kPass, kOpposite}, {Verdict::kFail, kSame}}),
            "Wrong: (a) says the opposite and passes; (b) says the same and fails.");
  EXPECT_EQ(
      said({{Verdict::kPass, kSame},
            {Verdict::kPass, kSame},
            {Verdict::kPass, kSame},
            {Verdict::kPass, kOpposite},
            {Verdict::kUndecided, kSame}}),
      "Half right: (a), (b) and (c) say the same and pass; (d) says the opposite and passes; (e) says the "
      "same and is undecided.");
  EXPECT_EQ(said({{Verdict::kUndecided, kSame}, {Verdict::kUndecided, kSame}}),
            "Left open: (a) and (b) say the same and are undecided.");
}

TEST(TerminalReport, SaysTheSameInEightyColumns) {
  StudyReport report = some_report();
  std::string words;
  for (int i = 0; i < 30; ++i) words += "several ";
  report.answer += " " + words;
  report.claims[0].clauses[0].statement += " " + words;
  report.claims[0].clauses[0].asked = report.claims[0].clauses[0].measured = words;
  report.claims[0].original_remark = words;
  const std::string text = report_for_terminal(report);
  expect_lines_fit(text);
  expect_in_order(
      text,
      {"Is it so?\n\nIt is so. several", "the picture (loss):\n", "4 clauses: 1 pass, 1 fail",
       "000.7 Slices are worse.", "UNDECIDED", "left open", "\n000.1 FAIL, algebra. A head",
       "\n  PASS  algebra  (a) A head reads all.", "\n      asked: several", "\n      measured: several",
       "\n  FAIL  algebra  (b) No more.\n      asked: exact zeros\n"
       "      measured: two are not 0\n",
       "head  coordinates", "plot of algebra (loss):",
       "\n000.7 UNDECIDED, trained. Slices are worse.\n  UNDECIDED  trained  (a) They lose.\n",
       "\n  MEASURED  trained  (b) They take less time.\n      measured: 4 s of 5 s\n", "a second plot",
       "What the originals say\n000.1: \"It reads all.\"", "Right: (a) says the same and passes.",
       "Repeat with: multihead study a-study"});
  EXPECT_EQ(count_of(text, "the picture"), 1u);
}

StudyReport report_of(Table table) {
  StudyReport report;
  report.question = "why?";
  report.claims = {{.id = "1", .statement = "so", .tables = {std::move(table)}}};
  return report;
}

TEST(TerminalReport, LeavesTablesThatFitAsTheyAre) {
  const std::string text =
      report_for_terminal(report_of({"", {"arm of some words", "loss"}, {{"one", "0.1"}}}));
  EXPECT_THAT(text, HasSubstr("\n    arm of some words  loss\n    one                 0.1\n"));
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
  EXPECT_EQ(count_of(text, figures), 8u);
}

TEST(TerminalReport, TakesTablesWithoutRowsAndRowsWithoutCells) {
  EXPECT_THAT(report_for_terminal(report_of({"", {"arm", "loss"}, {}})), HasSubstr("arm  loss\n"));
  EXPECT_THAT(report_for_terminal(report_of({"", {"arm", "loss"}, {{"one"}}})), HasSubstr("one\n"));
}

TEST(Words, AreWrapped) {
  EXPECT_EQ(wrapped("aa bb cc", "  ", 7, "  "), "  aa bb\n    cc\n");
}

TEST(Plots, OfLinesDrawEachSeedThinAndTheMeanThick) {
  const Plot plot{.title = "title <1>",
                  .x_label = "x",
                  .y_label = "y",
                  .series = {{.name = "s", .x = {1, 2}, .y = {3, 4}, .lines = {{2, 3}, {4, 5}}},
                             {.name = "no seeds", .x = {1, 2}, .y = {1, 2}}}};
  const std::string svg = plot_as_svg(plot);
  EXPECT_EQ(count_of(svg, "<polyline"), 4u);
  EXPECT_EQ(count_of(svg, "stroke-width=\"1\" opacity=\"0.5\""), 2u);
  EXPECT_EQ(count_of(svg, "fill=\"none\" stroke=\"#0072B2\" stroke-width=\"3\""), 1u);
  EXPECT_THAT(svg, AllOf(HasSubstr("title &lt;1&gt;"), HasSubstr(">s<"), Not(HasSubstr("<polygon"))));
  EXPECT_THAT(plot_for_terminal(plot, ""), AllOf(HasSubstr(" 4\n"), HasSubstr(" 2\n")));
}

TEST(Plots, LeaveOutWhatNoAxisHasAPlaceFor) {
  const Plot plot{
      .title = "t",
      .x_label = "x",
      .y_label = "y",
      .log_x = true,
      .series = {{.name = "s", .x = {0, 8, 16}, .y = {1, 2, std::nan("")}, .lines = {{1, INFINITY}}}}};
  EXPECT_THAT(plot_as_svg(plot), AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_THAT(plot_as_svg({.title = "nothing", .x_label = "", .y_label = "", .series = {}}),
              HasSubstr("nothing"));
}

TEST(Plots, HaveNumbersWithoutExponents) {
  Plot plot{.title = "t",
            .x_label = "parameters",
            .y_label = "loss",
            .series = {{.name = "s", .x = {0, 60000}, .y = {0.25, 0.5}}}};
  const std::string svg = plot_as_svg(plot);
  for (const char* number : {">10,000<", ">60,000<", ">0.25<", ">0.30<", ">0.50<"})
    EXPECT_THAT(svg, HasSubstr(number));
  EXPECT_THAT(svg, Not(HasSubstr("e+")));
}

TEST(Plots, OfStripsHaveAPointForEachSeed) {
  const std::string svg = plot_as_svg(strips("t"));
  EXPECT_THAT(svg, AllOf(HasSubstr(">one<"), HasSubstr("a &lt;b&gt;"), HasSubstr("opacity=\"0.25\""),
                         Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  EXPECT_EQ(count_of(svg, "<circle"), 4u);
  EXPECT_THAT(plot_for_terminal(strips("t"), ""), AllOf(HasSubstr(" 3\n"), HasSubstr(" 4\n")));
}

std::string strips_against(PlotReference reference) {
  Plot plot = strips("t");
  plot.reference = reference;
  return plot_as_svg(plot);
}

/// x of the dashed line, "" where there is none.
std::string dashed_at(PlotReference reference) {
  const std::string svg = strips_against(reference);
  const size_t dashed = svg.find("stroke-dasharray");
  if (dashed == std::string::npos) return "";
  const size_t from = svg.rfind("x1=\"", dashed) + 4;
  return svg.substr(from, svg.find('"', from) - from);
}

TEST(Plots, OfStripsHaveADashedLineAtTheirReference) {
  const std::string first = dashed_at(PlotReference::kFirst), zero = dashed_at(PlotReference::kZero);
  EXPECT_EQ(dashed_at(PlotReference::kNothing), "");
  EXPECT_LT(std::stod(zero), std::stod(first));
  // The mean of the first row is drawn at the same place.
  EXPECT_EQ(
      count_of(strips_against(PlotReference::kFirst), "<line x1=\"" + first + "\" x2=\"" + first + "\""), 2u);
  EXPECT_THAT(strips_against(PlotReference::kZero), HasSubstr(">0<"));  // the axis reaches down to it
}

Plot matrices() {
  return {.title = "two heads",
          .x_label = "",
          .y_label = "",
          .series = {{.name = "head 0", .lines = {{1, 0, 0}, {0.5, 0.5, 0}}},
                     {.name = "head 1", .lines = {{0, 0, 1}, {0, 0.1, 0.9}}}},
          .kind = PlotKind::kMatrices,
          .row_names = {"ein", "Hund"},
          .column_names = {"a", "small", "dog"}};
}

TEST(Plots, OfMatricesHaveAHeatMapEachWithItsWords) {
  const std::string svg = plot_as_svg(matrices());
  for (const char* part :
       {">two heads<", ">head 0<", ">head 1<", ">Hund<", ">small<", "Hund to small: 0.500"})
    EXPECT_THAT(svg, HasSubstr(part));
  EXPECT_EQ(count_of(svg, "class=\"cell\""), 12u);
  EXPECT_EQ(count_of(svg, "<svg"), count_of(svg, "</svg>"));
  const std::string text = plot_for_terminal(matrices(), "  ");
  expect_lines_fit(text);
  EXPECT_THAT(text, AllOf(HasSubstr("head 1"), HasSubstr("Hund"), HasSubstr("█"), HasSubstr("from 70 %")));
}

TEST(Plots, OfMatricesMayHaveAColourForEachRow) {
  Plot plot = matrices();
  plot.row_colours = true;
  const std::string svg = plot_as_svg(plot);
  EXPECT_EQ(count_of(svg, "fill=\"#0072B2\" fill-opacity=\"0.500\""), 0u) << "the first row has 1 and 0";
  EXPECT_EQ(count_of(svg, "fill=\"#D55E00\" fill-opacity=\"0.500\""), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("attention weight"))) << "the blue scale is of blue cells";
}

TEST(Plots, OfBarsAreAsLongAsTheirNumbers) {
  Plot plot;
  plot.title = "costs", plot.kind = PlotKind::kBars;
  plot.series = {{.name = "two", .y = {65536}}, {.name = "one", .y = {262144}}};
  const std::string svg = plot_as_svg(plot);
  EXPECT_THAT(svg, AllOf(HasSubstr(">65,536<"), HasSubstr(">262,144<"), HasSubstr("width=\"330.0\""),
                         HasSubstr("width=\"82.5\"")));
  EXPECT_THAT(plot_for_terminal(plot, ""), AllOf(HasSubstr(" 65,536\n"), HasSubstr(" 262,144\n")));
  EXPECT_EQ(count_of(svg, "fill=\"#D55E00\""), 0u);
  plot.marks = {{1}};
  EXPECT_THAT(plot_as_svg(plot), HasSubstr("width=\"330.0\" height=\"16\" fill=\"#D55E00\""));
}

TEST(Plots, OfMatricesFrameTheCellsThatAreMarked) {
  Plot plot = matrices();
  EXPECT_EQ(count_of(plot_as_svg(plot), "class=\"framed\""), 0u);
  plot.marks = {{0, 1, 2}, {1, 0, 0}, {1, 1, 1}};
  EXPECT_EQ(count_of(plot_as_svg(plot), "class=\"framed\""), 3u);
  for (const std::vector<int32_t>& wrong : {std::vector{2, 0, 0}, std::vector{-1, 0, 0}, std::vector{1, 1}}) {
    plot.marks = {wrong};
    EXPECT_THROW(plot_as_svg(plot), ShapeError);
  }
}

TEST(Plots, OfLinesMayHaveALogarithmicHeightWithZeroOnTheEdge) {
  Plot plot;
  plot.title = "t", plot.log_y = true;
  plot.series = {{.name = "grows", .x = {0, 1, 2}, .y = {1e-6, 1e-3, 1}},
                 {.name = "none", .x = {0, 2}, .y = {0, 0}}};
  const std::string svg = plot_as_svg(plot);
  // Equal factors are equal steps; 0 has the height of the least number.
  const auto heights = [&](size_t line) {
    size_t at = 0;
    for (size_t i = 0; i <= line; ++i) at = svg.find("<polyline points=\"", at) + 18;
    std::vector<double> found;
    std::istringstream points(svg.substr(at, svg.find('"', at) - at));
    for (std::string point; points >> point;) found.push_back(std::stod(point.substr(point.find(',') + 1)));
    return found;
  };
  const std::vector<double> grows = heights(0), none = heights(1);
  ASSERT_EQ(grows.size(), 3u);
  EXPECT_NEAR(grows[0] - grows[1], grows[1] - grows[2], 0.11);
  EXPECT_EQ(none, (std::vector<double>{grows[0], grows[0]}));
  for (const char* number : {">0.01<", ">0.0001<", ">1<"}) EXPECT_THAT(svg, HasSubstr(number));
}

TEST(Plots, OfMatricesNumberWordsThatHaveNoName) {
  Plot plot = matrices();
  plot.row_names.clear(), plot.column_names.clear();
  EXPECT_THAT(plot_as_svg(plot), HasSubstr("2 to 3: 0.900"));
}

TEST(Plots, OfMatricesThatAreNoneAreRefused) {
  Plot plot = matrices();
  plot.series[0].lines[1].pop_back();
  EXPECT_THROW(plot_as_svg(plot), ShapeError);
  EXPECT_THROW(plot_for_terminal(plot, ""), ShapeError);
  plot = matrices();
  plot.row_names.pop_back();
  EXPECT_THROW(plot_as_svg(plot), ShapeError);
  plot = matrices();
  plot.series[1].lines.clear();
  EXPECT_THROW(plot_as_svg(plot), ShapeError);
}

}  // namespace
}  // namespace mh
