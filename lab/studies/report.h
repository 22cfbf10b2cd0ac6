// A study's report for a reader at a terminal, as Markdown with plots, and as JSON (to_json of io/config.h).
// Both texts have the same order: question, answer, one picture, how many clauses have which verdict, an
// overview, the claims with their clauses, what the originals say, the command that repeats it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lab/studies/claim.h"

namespace mh {

/// What a run found, in lines of at most 80 columns: its answer, how many clauses have which verdict, what it cost.
std::string summary_for_terminal(const StudyReport& report);
/// The same with every claim, its clauses, tables and plots.
std::string report_for_terminal(const StudyReport& report);

/// Plots are files beside the page.
struct MarkdownReport {
  std::string text;
  std::vector<std::pair<std::string, std::string>> plots;  // file name, SVG
};
MarkdownReport report_as_markdown(const StudyReport& report);

/// "3 clauses: 2 pass, 1 fail, 0 undecided, 0 measured without a prediction.", and the report's note.
std::string clause_count(const StudyReport& report);
/// "measured: 0.063 ± 0.032", or of a withdrawn clause "withdrawn: ..." why; empty where nothing was found.
std::string found_in(const Clause& clause);
/// Claims and their statements, kinds, verdicts, and whether the original statement is right.
Table overview(const StudyReport& report);
/// "001.2 FAIL, trained"; the number alone stands for a claim "001.2, trained".
std::string heading_of(const Claim& claim);
/// "2 threads, AVX3; 40 models, trained in 12 min of processor time; 3 s for the rest".
std::string cost_of(const StudyReport& report);
/// The first plot of the claim StudyReport::picture; null when there is none.
const Plot* picture_of(const StudyReport& report);
/// "Half right: (a) and (c) say the same and pass; (b) says the opposite and passes. Remark."
std::string about_the_original(const Claim& claim);

/// A plot as a picture of its own: lines over axes with a legend, strips with their names, or heat maps with
/// their words. Throws ShapeError when the rows of a matrix differ in length or its names are not as many as
/// rows and columns.
std::string plot_as_svg(const Plot& plot);
/// In 80 columns; cells that do not fit are broken into lines.
std::string table_for_terminal(const Table& table, const std::string& indent);
/// In 80 columns: a bar for each series, its last point or, of a strip, its mean; shades for matrices. Throws
/// as plot_as_svg() does.
std::string plot_for_terminal(const Plot& plot, const std::string& indent);

}  // namespace mh
