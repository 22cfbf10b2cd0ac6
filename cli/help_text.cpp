#include "cli/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "multihead/base/terminal_text.h"
#include "multihead/kernels/simd.h"

namespace mh::cli {
namespace {

constexpr size_t kColumns = 80, kNames = 26;  // of a line, and of the names in front of the descriptions
constexpr size_t kMostExclusions = 2;         // more would hide what the flag does

std::string names_of(const std::vector<const Flag*>& flags) {
  std::vector<std::string> names;
  for (const Flag* flag : flags) names.push_back(flag->get_name());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

// "(default: 5; not with --greedy)".
std::string remarks(const Flag& flag) {
  std::vector<std::string> all;
  if (flag.is_needed()) {
    all.emplace_back("needed");
  } else if (!flag.usual.empty()) {
    all.push_back("default: " + flag.usual);
  }
  if (!flag.needed.empty()) all.push_back("with " + names_of(flag.needed));
  const auto& excluded = flag.excluded;
  if (!excluded.empty() && excluded.size() <= kMostExclusions)
    all.push_back("not with " + names_of(excluded));
  return all.empty() ? "" : fmt::format(" ({})", fmt::join(all, "; "));
}

std::string in_column(const std::string& names, const std::string& text) {
  const std::string margin(kNames, ' ');
  std::string lines = wrapped(text, margin, kColumns);
  if (names.size() + 2 <= kNames) return names + lines.substr(names.size());
  return names + "\n" + lines;
}

// "  --scores query_key|tied|...": a long list of names goes on in the next line.
std::string entry_name(const std::string& flag, const std::string& value) {
  std::string text = "  " + flag + (value.empty() ? "" : " ");
  const size_t margin = text.size();
  size_t column = margin;
  for (size_t at = 0; at < value.size();) {
    const size_t end = std::min(value.find('|', at), value.size() - 1) + 1;
    if (column + end - at > kColumns) {
      text += "\n" + std::string(margin, ' ');
      column = margin;
    }
    text += value.substr(at, end - at);
    column += end - at;
    at = end;
  }
  return text;
}

std::string entry(const Flag& flag) {
  return in_column(entry_name(fmt::format("{}", fmt::join(flag.names, ", ")), flag.value_name()),
                   flag.about + remarks(flag));
}

std::string usage(const Verb& verb) {
  const bool has_verbs = !verb.listed_verbs().empty();
  std::string text = "Usage: " + verb.typed_name() + (verb.wants_verb() ? " VERB" : "") + " [FLAGS]";
  for (const Flag* argument : verb.arguments())
    text += argument->is_needed() ? " " + argument->value_name() : " [" + argument->value_name() + "]";
  text = wrapped(text, "", kColumns);
  return has_verbs && !verb.wants_verb() ? text + "       " + verb.typed_name() + " VERB ...\n" : text;
}

std::string arguments(const Verb& verb) {
  std::string text;
  for (const Flag* argument : verb.arguments()) {
    std::string about = argument->about;
    if (!argument->names.empty()) about += "; or give " + argument->get_name() + " " + argument->value_name();
    text += in_column("  " + argument->value_name(), about + remarks(*argument));
  }
  return text.empty() ? "" : "\nArguments:\n" + text;
}

std::string verbs(const Verb& verb) {
  std::string text, group;
  for (const Verb* listed : verb.listed_verbs()) {
    if (listed->get_group() != group) {
      group = listed->get_group();
      text += "\n" + group + ":\n";
    }
    const std::string line = wrapped(listed->get_description(), std::string(14, ' '), kColumns);
    const std::string name = "  " + listed->get_name();
    text += name + line.substr(name.size());
  }
  return text;
}

// In the order in which they come; what stands in no group first.
std::vector<std::string> groups(const Verb& verb) {
  std::vector<std::string> names{""};
  for (const auto& flag : verb.flags()) {
    if (std::find(names.begin(), names.end(), flag->title) == names.end()) names.push_back(flag->title);
  }
  return names;
}

std::string flags(const Verb& verb, bool all) {
  std::string text;
  for (const std::string& group : groups(verb)) {
    std::string entries;
    for (const auto& flag : verb.flags()) {
      if (flag->title == group && !flag->is_argument() && (all || !flag->is_rare)) entries += entry(*flag);
    }
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", group.empty() ? "Flags" : group, entries);
  }
  return text;
}

std::string more(const Verb& verb, bool all) {
  if (verb.get_parent() == nullptr) return "multihead VERB --help shows a verb's flags and an example.\n";
  const int64_t hidden = std::count_if(verb.flags().begin(), verb.flags().end(), [](const auto& flag) {
    return flag->is_rare && !flag->is_argument();
  });
  const std::string text = all || hidden == 0 ? ""
                                              : fmt::format("{}: {} --help-all\n",
                                                            counted(hidden, "more flag"), verb.typed_name());
  return text +
         "Every verb takes --threads N (0: one for each processor), --quiet (no progress,\n"
         "no remarks), --help and --help-all.\n";
}

std::string help_of(const Verb& verb, bool all) {
  std::string text = wrapped(verb.get_description(), "", kColumns) + "\n" + usage(verb);
  text += arguments(verb) + verbs(verb) + flags(verb, all) + "\n" + more(verb, all);
  if (!verb.get_footer().empty()) text += "\n" + verb.get_footer() + "\n";
  return text;
}

}  // namespace

std::string help_text(const Verb& verb, bool all) {
  std::string text = help_of(verb, all);
  if (!all || verb.get_parent() != nullptr) return text;
  for (const Verb* listed : verb.listed_verbs()) {  // multihead --help-all: every verb as well
    text += "\n" + std::string(kColumns - 1, '-') + "\n" + help_of(*listed, true);
    for (const Verb* own : listed->listed_verbs()) text += "\n" + help_of(*own, true);
  }
  return text;
}

std::string version_line() {
  return fmt::format("multihead {} (kernels: {})\n", MULTIHEAD_VERSION, dispatch_target());
}

}  // namespace mh::cli
