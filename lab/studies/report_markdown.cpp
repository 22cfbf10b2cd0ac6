#include <fmt/format.h>

#include "lab/studies/report.h"

#include "multihead/base/terminal_text.h"

namespace mh {
namespace {

constexpr size_t kPageWidth = 118;

std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

/// Lines of text. A word that would begin a list, a heading or a quotation where a line begins is escaped.
std::string lines_of_text(const std::string& text, const std::string& indent = "",
                          const std::string& further = "") {
  std::string out = wrapped(text, indent, kPageWidth, further);
  const std::string begin = "\n" + indent + further;
  for (size_t at = 0; (at = out.find(begin, at)) != std::string::npos; ++at) {
    const size_t word = at + begin.size(), end = out.find_first_of(" \n", word);
    const std::string first = out.substr(word, end - word);
    if (first == "-" || first == "+" || first == "*" || first.starts_with(">") || first.starts_with("#") ||
        first.starts_with("="))
      out.insert(word, "\\");
  }
  return out;
}
std::string paragraph(const std::string& text) {
  return text.empty() ? "" : lines_of_text(text) + "\n";
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

enum class Cells { kFigures, kWords };

std::string table_as_markdown(const Table& table, Cells cells = Cells::kFigures) {
  std::string text = table.caption.empty() ? "" : paragraph(table.caption + ":");
  const auto line = [&](const std::vector<std::string>& row) {
    text += "|";
    for (const std::string& one : row) text += " " + cell(one) + " |";
    text += "\n";
  };
  line(table.columns);
  text += "|";
  for (size_t c = 0; c < table.columns.size(); ++c)
    text += c == 0 || cells == Cells::kWords ? "---|" : "---:|";
  text += "\n";
  for (const auto& row : table.rows) line(row);
  return text + "\n";
}

std::string clauses_as_markdown(const Claim& claim) {
  std::string text;
  for (size_t i = 0; i < claim.clauses.size(); ++i) {
    const Clause& clause = claim.clauses[i];
    text += lines_of_text(fmt::format("- **{} {}** ({}). {}", clause_letter(i), verdict_name(clause.verdict),
                                      evidence_name(clause.kind), clause.statement),
                          "", "  ");
    if (!clause.asked.empty()) text += lines_of_text("- Asked: " + clause.asked, "  ", "  ");
    if (clause.measured.empty()) continue;
    std::string found = found_in(clause);
    found[0] = static_cast<char>(found[0] - 'a' + 'A');
    text += lines_of_text("- " + found, "  ", "  ");
  }
  return claim.clauses.empty() ? text : text + "\n";
}

std::string originals_as_markdown(const StudyReport& report) {
  std::string text;
  for (const Claim& claim : report.claims) {
    if (claim.original_words.empty()) continue;
    text += paragraph(fmt::format("**{}** {}", claim.id, claim.original_words)) +
            paragraph(about_the_original(claim));
  }
  if (text.empty()) return text;
  return "## What the originals say\n\n" +
         paragraph(
             "This study exists because people asked and answered in public. These are their words, and what "
             "the clauses above say of them.") +
         text;
}

}  // namespace

MarkdownReport report_as_markdown(const StudyReport& report) {
  MarkdownReport page;
  const Plot* const picture = picture_of(report);
  // Adds the plots of a claim that stand in one place of the page.
  const auto draw = [&](const Claim& claim, bool at_the_top) {
    for (size_t i = 0; i < claim.plots.size(); ++i) {
      if ((&claim.plots[i] == picture) != at_the_top) continue;
      const std::string file = file_name(fmt::format("{}-{}-{}.svg", report.name, claim.id, i + 1));
      page.text += fmt::format("![{}]({})\n\n", claim.plots[i].title, file);
      page.plots.emplace_back(file, plot_as_svg(claim.plots[i]));
    }
  };
  std::string& text = page.text;
  text = fmt::format("# {}\n\n", report.question) + paragraph(report.answer);
  for (const Claim& claim : report.claims) draw(claim, true);
  text += paragraph(clause_count(report)) + table_as_markdown(overview(report), Cells::kWords);
  for (const Claim& claim : report.claims) {
    text += fmt::format("## {}\n\n", heading_of(claim)) + paragraph(claim.statement) +
            (claim.remark.empty() ? "" : paragraph(claim.remark)) + clauses_as_markdown(claim);
    for (const Table& table : claim.tables) text += table_as_markdown(table);
    draw(claim, false);
  }
  text += originals_as_markdown(report);
  text += fmt::format("Repeat with `{}` ({}).\n", report.command, cost_of(report));
  return page;
}

}  // namespace mh
