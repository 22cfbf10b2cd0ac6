#include "lab/studies/page.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "lab/studies/report.h"
#include "multihead/base/embed.h"
#include "multihead/base/terminal_text.h"
#include "multihead/io/config.h"

// MULTIHEAD_PAGES is docs/answers.
MH_EMBED(mh_page_split, MULTIHEAD_PAGES "/split-or-project.md");
MH_EMBED(mh_page_diversity, MULTIHEAD_PAGES "/diversity.md");
MH_EMBED(mh_page_two, MULTIHEAD_PAGES "/two-matrices-or-one.md");
MH_EMBED(mh_page_unique, MULTIHEAD_PAGES "/unique-heads.md");
MH_EMBED(mh_page_one, MULTIHEAD_PAGES "/one-product.md");
MH_EMBED(mh_pictures, MULTIHEAD_PAGES "/pictures.json");

namespace mh {
namespace {

std::string_view page_of(std::string_view study) {
  if (study == "split-or-project") return {mh_page_split, mh_page_split_end};
  if (study == "diversity") return {mh_page_diversity, mh_page_diversity_end};
  if (study == "two-matrices-or-one") return {mh_page_two, mh_page_two_end};
  if (study == "unique-heads") return {mh_page_unique, mh_page_unique_end};
  if (study == "one-product") return {mh_page_one, mh_page_one_end};
  return {};
}

/// Without what only a reader of Markdown needs: the targets of links, the signs of bold words.
std::string plain(const std::string& text) {
  static const std::regex mark(R"(\[([^\]]*)\]\([^)]*\)|\*\*)");
  return std::regex_replace(text, mark, "$1");
}

/// Cells of "| a | b |".
std::vector<std::string> cells_of(const std::string& line) {
  static const std::regex edges("^ +| +$");
  std::vector<std::string> cells;
  std::istringstream rest(line.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');)
    cells.push_back(plain(std::regex_replace(cell, edges, "")));
  return cells;
}

}  // namespace

std::string markdown_for_terminal(std::string_view page, const std::string& picture) {
  std::istringstream lines{std::string(page)};
  std::string out, paragraph;
  Table table;
  bool code = false;
  const auto flush = [&] {
    if (!paragraph.empty())
      out += wrapped(plain(paragraph), "", 80, paragraph.starts_with("- ") ? "  " : "") + "\n";
    if (!table.columns.empty()) out += table_for_terminal(table, "") + "\n";
    paragraph.clear();
    table = {};
  };
  for (std::string line; std::getline(lines, line);) {
    const bool fence = line.starts_with("```");
    if (code) {
      out += fence ? "\n" : "    " + line + "\n";
    } else if (line.starts_with("|")) {
      if (table.columns.empty()) {
        table.columns = cells_of(line);
      } else if (!line.starts_with("|-")) {
        table.rows.push_back(cells_of(line));
      }
    } else if (line.empty() || line.starts_with("![") || line.starts_with("#") || line.starts_with("- ") ||
               fence) {
      // A list stands together.
      const bool next_item = line.starts_with("- ") && paragraph.starts_with("- ");
      flush();
      if (next_item) out.pop_back();
      if (line.starts_with("![")) out += picture + "\n";
      if (line.starts_with("#")) paragraph = line.substr(line.find(' ') + 1);
      if (line.starts_with("- ")) paragraph = line;
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
    code = code != fence;
  }
  flush();
  return out;
}

std::string page_for_terminal(std::string_view study) {
  const std::string_view page = page_of(study);
  if (page.empty()) return "";
  Plot picture;
  const auto pictures = nlohmann::json::parse(mh_pictures, mh_pictures_end);
  from_json(picture, pictures.at(std::string(study)).dump(), "pictures.json");
  return markdown_for_terminal(page, plot_for_terminal(picture, ""));
}

}  // namespace mh
