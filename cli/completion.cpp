// multihead completion SHELL: prints a script with which a shell completes what is typed. The script asks
// `multihead complete WORD ... LAST`.
#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/help_format.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "multihead/models/transformer_presets.h"
#include "multihead/nn/head_geometry.h"

namespace mh::cli {
namespace {

enum class Shell { kBash, kZsh, kFish };

constexpr std::string_view kBashScript =
    R"(# Completes multihead in bash; printed by: multihead completion bash
_multihead() {
  local cur=${COMP_WORDS[COMP_CWORD]} answer
  [[ $cur == = ]] && cur= # bash cuts --flag=value at the sign
  answer=$("${COMP_WORDS[0]/#\~/$HOME}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=()
  case $answer in
    '') ;;
    :files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      ;;
    :folders)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      ;;
    *) mapfile -t COMPREPLY < <(cut -f 1 <<<"$answer") ;;
  esac
}
complete -F _multihead multihead
)";

constexpr std::string_view kZshScript = R"(#compdef multihead
# Completes multihead in zsh; printed by: multihead completion zsh
_multihead() {
  local -a answer
  answer=("${(@f)$(${words[1]/#\~/$HOME} complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  case $answer[1] in
    '') ;;
    :files)
      compset -P '*='
      _files
      ;;
    :folders) _files -/ ;;
    *)
      answer=("${(@)answer//:/\\:}")
      answer=("${(@)answer/$'\t'/:}")
      _describe multihead answer
      ;;
  esac
}
if [[ $funcstack[1] == _multihead ]]; then
  _multihead "$@"
else
  compdef _multihead multihead
fi
)";

constexpr std::string_view kFishScript =
    R"(# Completes multihead in fish; printed by: multihead completion fish
function __multihead_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l program (string replace -r '^~' $HOME -- $words[1])
  set -l answer ($program complete $words[2..-1] 2>/dev/null)
  switch "$answer[1]"
    case :files
      __fish_complete_path (commandline -ct)
    case :folders
      __fish_complete_directories (commandline -ct)
    case '*'
      string join \n -- $answer
  end
end
complete -c multihead -f -a '(__multihead_complete)'
)";

using Words = std::vector<std::pair<std::string, std::string>>;  // and what they stand for

const CLI::App& whole_tool(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb : whole_tool(*verb.get_parent());
}

Words names_of(const std::vector<std::string>& names) {
  Words words;
  for (const std::string& name : names) words.emplace_back(name, "");
  return words;
}

Words verbs_of(const CLI::App& app) {
  Words words;
  for (const CLI::App* verb : listed_verbs(app))
    words.emplace_back(verb->get_name(), verb->get_description());
  return words;
}

/// What a value of this option may be; see name_values().
Words values_of(const CLI::App& verb, const CLI::Option& option) {
  const std::string name = option.get_type_name();
  if (name.find("FILE") != std::string::npos) return {{":files", ""}};
  if (name == "DIR") return {{":folders", ""}};
  if (name == "STUDY") return names_of(study_names());
  if (name == "VERB") return verbs_of(whole_tool(verb));
  Words words;
  if (name == "GEOMETRY") {
    for (const GeometryName& geometry : geometry_names()) words.emplace_back(geometry.name, "");
  } else if (name == "PRESET") {
    for (const TransformerPreset& preset : transformer_presets()) words.emplace_back(preset.name, "");
  } else if (name.find('|') != std::string::npos) {
    words = names_of(CLI::detail::split(name, '|'));
  }
  return words;
}

/// The flags of the verb, and those that every verb takes (--version stands alone).
Words flags_of(const CLI::App& verb) {
  Words words;
  for (const CLI::App* of = &verb; of != nullptr; of = of->get_parent()) {
    if (of != &verb && of->get_parent() != nullptr) continue;  // a verb's own verbs do not take its flags
    for (const CLI::Option* option : of->get_options([](const auto* o) { return o->nonpositional(); })) {
      if (of != &verb && option->check_lname("version")) continue;
      for (const std::string& name : option->get_lnames())
        words.emplace_back("--" + name, option->get_description());
      for (const std::string& name : option->get_snames())
        words.emplace_back("-" + name, option->get_description());
    }
  }
  return words;
}

/// The flag of this name that takes a value, or null.
const CLI::Option* flag_with_value(const CLI::App& verb, const std::string& name) {
  for (const CLI::App* of = &verb; of != nullptr; of = of->get_parent()) {
    if (const CLI::Option* option = of->get_option_no_throw(name); option != nullptr)
      return option->get_items_expected_max() > 0 ? option : nullptr;
  }
  return nullptr;
}

/// What the last of these words may be, whatever it begins with.
Words offered(const CLI::App& tool, std::span<const std::string> words) {
  const CLI::App* verb = &tool;
  const CLI::Option* flag = nullptr;  // whose value is next
  for (const std::string& word : words.first(words.size() - 1)) {
    if (word == "=") continue;  // bash cuts --flag=value at the sign
    flag = flag == nullptr && word.starts_with('-') ? flag_with_value(*verb, word) : nullptr;
    const auto verbs = listed_verbs(*verb);
    const auto named =
        std::find_if(verbs.begin(), verbs.end(), [&](auto* v) { return v->get_name() == word; });
    if (named != verbs.end()) verb = *named;
  }
  const std::string& last = words.back();
  if (const size_t sign = last.find('='); sign != std::string::npos && last.starts_with('-')) {
    const CLI::Option* const before = flag_with_value(*verb, last.substr(0, sign));
    Words values = before != nullptr ? values_of(*verb, *before) : Words();
    for (auto& [value, about] : values) {
      if (!value.starts_with(':')) value.insert(0, last, 0, sign + 1);
    }
    return values;
  }
  if (last.starts_with('-')) return flags_of(*verb);
  if (flag != nullptr) return values_of(*verb, *flag);
  Words verbs = verbs_of(*verb);
  const bool begun =
      std::any_of(verbs.begin(), verbs.end(), [&](const auto& v) { return v.first.starts_with(last); });
  if (begun) return verbs;
  const auto arguments = verb->get_options([](const auto* o) { return o->get_positional(); });
  // A verb's lists of files may be flags' as well (--train a b), so without an argument files are offered.
  if (arguments.empty()) return verbs.empty() ? Words{{":files", ""}} : verbs;
  return values_of(*verb, *arguments.back());
}

}  // namespace

std::string completions(const CLI::App& tool, const std::vector<std::string>& words) {
  if (words.empty()) return "";
  const std::string last = words.back() == "=" ? "" : words.back();
  std::string text;
  for (const auto& [word, about] : offered(tool, words)) {
    if (word.starts_with(':') || word.starts_with(last))
      text += fmt::format("{}{}{}\n", word, about.empty() ? "" : "\t", about);
  }
  return text;
}

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<Shell>(Shell::kBash);
  CLI::App* verb =
      app.add_subcommand("completion", "Print a script that completes verbs and flags in your shell");
  add_choice(*verb, "shell", *shell, {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}},
             "The shell that reads it")
      ->default_str("")
      ->required();
  verb->footer(
      "Examples:\n"
      "  source <(multihead completion bash)\n"
      "  multihead completion fish > ~/.config/fish/completions/multihead.fish");
  verb->callback([shell] {
    write_text("", std::string(*shell == Shell::kBash  ? kBashScript
                               : *shell == Shell::kZsh ? kZshScript
                                                       : kFishScript));
  });
}

}  // namespace mh::cli
