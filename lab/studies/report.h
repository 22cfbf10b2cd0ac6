// A study's report for a reader at a terminal, as Markdown with plots, and as JSON (to_json of io/config.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lab/studies/claim.h"

namespace mh {

/// Lines of at most 80 columns: the question, the claims one by one with tables and verdicts, the conclusion.
/// Of a withdrawn claim both reports print "Withdrawn:" and the reason, and nothing else.
std::string report_for_terminal(const StudyReport& report);

/// A page: first the answer in plain words, then the evidence. Plots are files beside it.
struct MarkdownReport {
  std::string text;
  std::vector<std::pair<std::string, std::string>> plots;  // file name, SVG
};
MarkdownReport report_as_markdown(const StudyReport& report);

/// "The original statement is right: ...". REQUIRES: the claim has original words.
std::string about_the_original(const Claim& claim);

/// Words of `text` in lines of at most `width` columns, each begun by `indent`, all but the first by
/// `further` as well.
std::string wrapped(const std::string& text, const std::string& indent = "", size_t width = 80,
                    const std::string& further = "");

/// A plot as a picture of its own: axes, lines, intervals as bands, a legend; or strips, with their names.
std::string plot_as_svg(const Plot& plot);
/// A bar for each series, its last point or, of a strip, its mean; in 80 columns.
std::string plot_for_terminal(const Plot& plot, const std::string& indent);

}  // namespace mh
