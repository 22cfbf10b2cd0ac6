#include "cli/help_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

constexpr size_t kColumns = 80, kNames = 26;  // of a line, and of the names in front of the descriptions
constexpr size_t kMostExclusions = 2;         // more would hide what the flag does

bool takes_a_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

bool takes_several(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size && option.get_allow_extra_args();
}

bool is_needed(const CLI::Option& option) {
  return option.get_required() || option.get_default_str() == "needed";
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

// "(default: 5; not with --greedy)".
std::string remarks(const CLI::Option& option) {
  std::vector<std::string> all;
  const std::string usual = option.get_default_str();
  if (is_needed(option)) {
    all.emplace_back("needed");
  } else if (!usual.empty()) {
    all.push_back("default: " + usual);
  }
  if (!option.get_needs().empty()) all.push_back("with " + names_of(option.get_needs()));
  const auto& excluded = option.get_excludes();
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

std::string entry(const CLI::Option& option) {
  std::string flag = option.get_name(false, true);  // "-i,--input"
  if (const size_t comma = flag.find(','); comma != std::string::npos) flag.insert(comma + 1, " ");
  return in_column(entry_name(flag, value_name(option)), option.get_description() + remarks(option));
}

// The words of a command as a shell would cut it, with the spaces in front of them.
std::vector<std::string> command_words(const std::string& command) {
  std::vector<std::string> words;
  bool in_quotes = false, open = false;
  for (const char c : command) {
    if (c == '\'') in_quotes = !in_quotes;
    if (c == ' ' && !in_quotes) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    words.back() += c;
  }
  return words;
}

// A command longer than a line goes on in the next one, before a flag, as a shell reads it.
std::string example_line(const std::string& line) {
  if (line.size() <= kColumns || !line.starts_with("  ")) return line + "\n";
  std::string text, now = " ";
  const std::vector<std::string> words = command_words(line);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string piece = words[i];
    while (i + 1 < words.size() && piece.starts_with("-") && !words[i + 1].starts_with("-")) {
      piece += " " + words[++i];  // a flag keeps its values
    }
    if (now.size() + 1 + piece.size() + 2 > kColumns) {
      text += now + " \\\n";
      now = "   ";
    }
    now += " " + piece;
  }
  return text + now + "\n";
}

std::string examples(std::string footer) {
  constexpr std::string_view kGoesOn = " \\\n   ";  // and one space that stays
  for (size_t at = 0; (at = footer.find(kGoesOn, at)) != std::string::npos;) footer.erase(at, kGoesOn.size());
  std::string text;
  for (size_t at = 0; at < footer.size();) {
    const size_t end = std::min(footer.find('\n', at), footer.size());
    const std::string line = footer.substr(at, end - at);
    text += line.starts_with(" ") ? example_line(line) : wrapped(line, "", kColumns);
    at = end + 1;
  }
  return text;
}

class HelpFormat : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    const bool all = mode == CLI::AppFormatMode::All;
    std::string text = help(*app, all);
    if (all && app->get_parent() == nullptr) {  // multihead --help-all: every verb as well
      for (const CLI::App* verb : listed_verbs(*app)) {
        text += "\n" + std::string(kColumns - 1, '-') + "\n" + help(*verb, true);
        for (const CLI::App* of_verb : listed_verbs(*verb)) text += "\n" + help(*of_verb, true);
      }
    }
    return text;
  }

  void leave_out(const CLI::Option* option) { rare_.insert(option); }

 private:
  std::string help(const CLI::App& app, bool all) const {
    std::string text = wrapped(app.get_description(), "", kColumns) + "\n" + usage(app);
    text += arguments(app) + verbs(app);
    for (const std::string& group : groups(app)) text += flags(app, group, all);
    text += "\n" + more(app, all);
    if (!app.get_footer().empty()) text += "\n" + examples(app.get_footer());
    return text;
  }

  static std::string usage(const CLI::App& app) {
    const auto arguments = app.get_options([](const auto* o) { return o->get_positional(); });
    const bool has_verbs = !listed_verbs(app).empty();
    std::string text =
        "Usage: " + typed_name(app) + (has_verbs && arguments.empty() ? " VERB" : "") + " [FLAGS]";
    for (const CLI::Option* option : arguments) {
      const std::string name = value_name(*option);
      text += is_needed(*option) ? " " + name : " [" + name + "]";
    }
    text = wrapped(text, "", kColumns);
    if (has_verbs && !arguments.empty()) text += "       " + typed_name(app) + " VERB ...\n";
    return text;
  }

  static std::string arguments(const CLI::App& app) {
    std::string text;
    for (const CLI::Option* option : app.get_options([](const auto* o) { return o->get_positional(); })) {
      std::string about = option->get_description();
      if (option->nonpositional())
        about += "; or give " + option->get_name(false, true) + " " + value_name(*option);
      text += in_column("  " + value_name(*option), about + remarks(*option));
    }
    return text.empty() ? "" : "\nArguments:\n" + text;
  }

  // In the order in which they come; what stands in no group first, what every verb takes last.
  static std::vector<std::string> groups(const CLI::App& app) {
    std::vector<std::string> names = app.get_groups();
    names.erase(std::remove_if(names.begin(), names.end(),
                               [](const auto& n) { return n.empty() || n == kEveryVerb; }),
                names.end());
    std::stable_partition(names.begin(), names.end(), [](const auto& n) { return n == "Options"; });
    if (app.get_parent() == nullptr) names.emplace_back(kEveryVerb);
    return names;
  }

  static std::vector<const CLI::Option*> flags_of(const CLI::App& app, const std::string& group) {
    return app.get_options([&](const CLI::Option* option) {
      const bool of_every_verb = option == app.get_help_ptr() || option == app.get_help_all_ptr();
      return option->get_group() == group && !option->get_positional() &&
             (!of_every_verb || app.get_parent() == nullptr);
    });
  }

  std::string flags(const CLI::App& app, const std::string& group, bool all) const {
    std::string text;
    for (const CLI::Option* option : flags_of(app, group)) {
      if (all || !rare_.contains(option)) text += entry(*option);
    }
    return text.empty() ? "" : fmt::format("\n{}:\n{}", group == "Options" ? "Flags" : group, text);
  }

  static std::string verbs(const CLI::App& app) {
    std::string text, group;
    for (const CLI::App* verb : listed_verbs(app)) {
      if (verb->get_group() != group) {
        group = verb->get_group();
        text += "\n" + (group == "Subcommands" ? std::string("Verbs") : group) + ":\n";
      }
      std::string line = wrapped(verb->get_description(), std::string(14, ' '), kColumns);
      const std::string name = "  " + verb->get_name();
      text += name + line.substr(name.size());
    }
    return text;
  }

  std::string more(const CLI::App& app, bool all) const {
    if (app.get_parent() == nullptr) return "multihead VERB --help shows a verb's flags and an example.\n";
    int64_t hidden = 0;
    if (!all) {
      for (const std::string& group : groups(app)) {
        const auto flags = flags_of(app, group);
        hidden += std::count_if(flags.begin(), flags.end(), [&](const auto* o) { return rare_.contains(o); });
      }
    }
    std::string text;
    if (hidden > 0) {
      text = fmt::format("{}: {} --help-all\n", counted(hidden, "more flag"), typed_name(app));
    }
    return text +
           "Every verb takes --threads N (0: one for each processor), --quiet (no progress,\n"
           "no remarks), --help and --help-all.\n";
  }

  std::set<const CLI::Option*> rare_;
};

HelpFormat& format_of(CLI::App& verb) {
  return dynamic_cast<HelpFormat&>(*verb.get_formatter());
}

}  // namespace

void use_help_format(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("-h,--help", "This help")->group(kEveryVerb);
  app.set_help_all_flag("--help-all", "Help with every flag")->group(kEveryVerb);
}

void group_flags(CLI::App& verb, const char* title, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) verb.get_option(flag)->group(title);
}

void name_values(CLI::App& verb, const char* name, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) verb.get_option(flag)->type_name(name);
}

void rare_flags(CLI::App& verb, std::initializer_list<const char*> flags) {
  for (const char* flag : flags) format_of(verb).leave_out(verb.get_option(flag));
}

void common_flags(CLI::App& verb, std::initializer_list<const char*> flags) {
  std::set<const CLI::Option*> common;
  for (const char* flag : flags) common.insert(verb.get_option(flag));
  for (const CLI::Option* option : verb.get_options()) {
    if (!common.contains(option)) format_of(verb).leave_out(option);
  }
}

std::vector<const CLI::App*> listed_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::vector<std::string> listed_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : listed_verbs(app)) names.push_back(verb->get_name());
  return names;
}

std::string typed_name(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb.get_name()
                                      : typed_name(*verb.get_parent()) + " " + verb.get_name();
}

std::string value_name(const CLI::Option& option) {
  if (!takes_a_value(option)) return "";
  if (option.get_items_expected_min() == 0) return "[" + option.get_type_name() + "]";  // it may be left out
  return option.get_type_name() + (takes_several(option) ? "..." : "");
}

}  // namespace mh::cli
