// multihead pages DIR: writes what the tables of settings say into the pages of docs: in docs/verbs and docs/heads each verb's flags,
// in docs/file-formats.md the options of the reports; and in docs/precision.md the table of kernels. Not for users: --help does not
// list it. A page marks the place by "<!-- flags: GROUP -->", "<!-- options: VERB -->" or "<!-- kernels: all -->", and the table ends
// at the next empty line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/kernels/product_kernels.h"

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

/// The options of the reports that the verbs of a verb give.
std::string table_of_options(const Verb& parent) {
  std::string table = "| verb | options |\n|---|---|\n";
  for (const auto& verb : parent.verbs()) {
    if (verb->find("--options") == nullptr) continue;
    std::vector<std::string> names;
    for (const auto& flag : verb->flags()) {
      if (!flag->setting.empty()) names.push_back("`" + flag->setting + "`");
    }
    table += fmt::format("| `{}` | {} |\n", verb->get_name(), fmt::join(names, ", "));
  }
  return table;
}

/// Which kernel serves a precision, by the table of kernels/product_kernels.h.
std::string table_of_kernels() {
  std::string table = "| precision | weights | kernel: the first that the processor has |\n|---|---|---|\n";
  for (const auto& [precision_name, precision] : kPrecisionNames) {
    for (const auto& [weights_name, weights] : kWeightsKindNames) {
      std::vector<std::string> kernels;
      for (const KernelRule& rule : kKernelRules) {
        if (rule.contract != precision || rule.weights != weights) continue;
        std::vector<std::string> needs;
        for (const auto& [name, feature] : kFeatureNames) {
          if (rule.taken_where.has(feature) || needs_of(rule.kernel).has(feature)) needs.emplace_back(name);
        }
        kernels.push_back(fmt::format("`{}`{}", name_of(rule.kernel, kProductKernelNames),
                                      needs.empty() ? "" : fmt::format(" ({})", fmt::join(needs, ", "))));
      }
      table += fmt::format("| `{}` | {} | {} |\n", precision_name, weights_name, fmt::join(kernels, ", "));
    }
  }
  return table;
}

/// The page with table_of(NAME) behind each "<!-- KIND: NAME -->".
template <class TableOf>
std::string with_tables(std::string page, const std::string& kind, const TableOf& table_of) {
  const std::string begin = "<!-- " + kind + ": ";
  constexpr std::string_view kEnd = " -->\n";
  for (size_t at = 0; (at = page.find(begin, at)) != std::string::npos;) {
    const size_t name = at + begin.size(), end = page.find(kEnd, name);
    if (end == std::string::npos) break;
    const size_t from = end + kEnd.size();
    const size_t to = std::min(page.find("\n\n", from - 1) + 1, page.size());
    const std::string table = table_of(page.substr(name, end - name));
    page.replace(from, to - from, table);
    at = from + table.size();
  }
  return page;
}

template <class TableOf>
void write_tables(const std::filesystem::path& page, const std::string& kind, const TableOf& table_of) {
  if (!std::filesystem::exists(page)) return;
  const std::string text = read_file(page), now = with_tables(text, kind, table_of);
  if (now != text) write_file_atomically(page, now);
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
  verb->add_option("folder", *folder, "docs, docs/verbs or docs/heads")->type_name("DIR")->required();
  verb->callback([folder, &app] {
    const std::filesystem::path pages = *folder;
    for (const Verb* other : all_verbs(app)) {
      for (const auto& in : {pages, pages / "verbs", pages / "heads"})
        write_tables(in / (other->get_name() + ".md"), "flags",
                     [&](const std::string& group) { return table_of(*other, group); });
    }
    write_tables(pages / "file-formats.md", "options", [&](const std::string& name) {
      const Verb* const parent = app.verb(name);
      MH_ASSERT(parent != nullptr);
      return table_of_options(*parent);
    });
    write_tables(pages / "precision.md", "kernels", [](const std::string&) { return table_of_kernels(); });
  });
}

}  // namespace mh::cli
