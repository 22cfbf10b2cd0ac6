#include <fmt/format.h>

#include "lab/studies/report.h"

namespace mh {
namespace {

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

/// For file names: what is no letter, digit, point or dash becomes a dash.
std::string file_name(std::string text) {
  for (char& c : text) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!plain) c = '-';
  }
  return text;
}

std::string table_as_markdown(const Table& table) {
  std::string text = table.caption.empty() ? "" : wrapped(table.caption + ":") + "\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    text += "|";
    for (const std::string& one : cells) text += " " + cell(one) + " |";
    text += "\n";
  };
  line(table.columns);
  text += "|";
  for (size_t c = 0; c < table.columns.size(); ++c) text += c == 0 ? "---|" : "---:|";
  text += "\n";
  for (const auto& row : table.rows) line(row);
  return text + "\n";
}

}  // namespace

MarkdownReport report_as_markdown(const StudyReport& report) {
  MarkdownReport page;
  std::string& text = page.text;
  text = fmt::format("# {}\n\n", report.question);
  text += wrapped(report.answer, "", 118) + "\n";
  if (!report.conclusion.empty()) text += wrapped(report.conclusion, "", 118) + "\n";
  const int withdrawn = report.count(Verdict::kWithdrawn);
  text += wrapped(fmt::format(
                      "{}: {} pass, {} fail, {} undecided, {} measured without a prediction{}. "
                      "Repeat with `{}` ({}).",
                      report.claims.size() == 1 ? "1 claim" : fmt::format("{} claims", report.claims.size()),
                      report.count(Verdict::kPass), report.count(Verdict::kFail),
                      report.count(Verdict::kUndecided), report.count(Verdict::kMeasured),
                      withdrawn == 0 ? "" : fmt::format(", {} withdrawn", withdrawn), report.command,
                      report.machine),
                  "", 118) +
          "\n| claim | verdict | the original statement |\n|---|---|---|\n";
  for (const Claim& claim : report.claims) {
    if (claim.verdict == Verdict::kWithdrawn) {
      text += fmt::format("| {} | {} | |\n", claim.id, verdict_name(claim.verdict));
      continue;
    }
    text += fmt::format("| {} {} | {} | {} |\n", claim.id, cell(claim.statement), verdict_name(claim.verdict),
                        original_statement_name(claim.original_statement));
  }
  text += "\n";
  for (const Claim& claim : report.claims) {
    text += fmt::format("## {} {}\n\n", claim.id, verdict_name(claim.verdict));
    if (claim.verdict == Verdict::kWithdrawn) {
      text += wrapped("Withdrawn: " + claim.withdrawn, "", 118) + "\n";
      continue;
    }
    text += wrapped(claim.statement, "", 118) + "\n" + wrapped("Measured: " + claim.measured, "", 118) + "\n";
    if (!claim.tolerance.empty()) text += wrapped("Asked: " + claim.tolerance + ".", "", 118) + "\n";
    if (!claim.original_words.empty()) text += wrapped(about_the_original(claim), "", 118) + "\n";
    for (const Table& table : claim.tables) text += table_as_markdown(table);
    for (size_t i = 0; i < claim.plots.size(); ++i) {
      const std::string file = file_name(fmt::format("{}-{}-{}.svg", report.name, claim.id, i + 1));
      text += fmt::format("![{}]({})\n\n", claim.plots[i].title, file);
      page.plots.emplace_back(file, plot_as_svg(claim.plots[i]));
    }
  }
  return page;
}

}  // namespace mh
