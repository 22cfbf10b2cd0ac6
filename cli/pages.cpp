// multihead pages DIR: writes what the tables of settings say into the pages of docs/verbs or docs/heads. Not for users:
// --help does not list it. A page marks the place by "<!-- flags: GROUP -->", and the table ends at the next
// empty line.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/file.h"

namespace mh::cli {
namespace {

std::string in_cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

std::string table_of(const Verb& verb, const std::string& group) {
  std::string table = "| flag | default | |\n|---|---|---|\n";
  for (const auto& flag : verb.flags()) {
    if (flag->title != group) continue;
    const std::string value = flag->value_name(), type = value.empty() ? "" : " " + value;
    table += fmt::format("| `{}{}` | {} | {} |\n", flag->get_name(), in_cell(type), flag->usual,
                         in_cell(flag->about));
  }
  return table;
}

std::string with_tables(const Verb& verb, std::string page) {
  constexpr std::string_view kBegin = "<!-- flags: ", kEnd = " -->\n";
  for (size_t at = 0; (at = page.find(kBegin, at)) != std::string::npos;) {
    const size_t group = at + kBegin.size(), end = page.find(kEnd, group);
    if (end == std::string::npos) break;
    const size_t from = end + kEnd.size();
    const size_t to = std::min(page.find("\n\n", from - 1) + 1, page.size());
    const std::string table = table_of(verb, page.substr(group, end - group));
    page.replace(from, to - from, table);
    at = from + table.size();
  }
  return page;
}

/// The verbs of `app` and theirs.
std::vector<const Verb*> all_verbs(const Verb& app) {
  std::vector<const Verb*> all;
  for (const auto& verb : app.verbs()) {
    all.push_back(verb.get());
    for (const Verb* own : all_verbs(*verb)) all.push_back(own);
  }
  return all;
}

}  // namespace

void add_pages(Verb& app) {
  auto folder = std::make_shared<std::string>();
  Verb* verb = app.add_subcommand("pages", "Write the tables of flags into the pages of this folder");
  verb->add_option("folder", *folder, "docs/verbs or docs/heads")->type_name("DIR")->required();
  verb->callback([folder, &app] {
    for (const Verb* other : all_verbs(app)) {
      const std::filesystem::path page = std::filesystem::path(*folder) / (other->get_name() + ".md");
      if (!std::filesystem::exists(page)) continue;
      const std::string text = read_file(page), now = with_tables(*other, text);
      if (now != text) write_file_atomically(page, now);
    }
  });
}

}  // namespace mh::cli
