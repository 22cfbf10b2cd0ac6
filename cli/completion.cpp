// multihead completion SHELL: prints a script with which a shell completes what is typed. The script asks
// `multihead complete WORD ... LAST`.
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "multihead/io/cut_at.h"
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

Words names_of(const std::vector<std::string>& names) {
  Words words;
  for (const std::string& name : names) words.emplace_back(name, "");
  return words;
}

Words verbs_of(const Verb& of) {
  Words words;
  for (const Verb* verb : of.listed_verbs()) words.emplace_back(verb->get_name(), verb->get_description());
  return words;
}

/// What a value of this flag may be.
Words values_of(const Verb& verb, const Flag& flag) {
  const std::string& name = flag.value;
  if (name.find("FILE") != std::string::npos) return {{":files", ""}};
  if (name == "DIR" || name == "MODEL") return {{":folders", ""}};
  if (name == "STUDY") return names_of(study_names());
  if (name == "VERB") return verbs_of(verb.tool());
  Words words;
  if (name == "GEOMETRY") {
    for (const GeometryName& geometry : geometry_names()) words.emplace_back(geometry.name, "");
  } else if (name == "PRESET") {
    for (const TransformerPreset& preset : transformer_presets()) words.emplace_back(preset.name, "");
  } else if (name.find('|') != std::string::npos) {
    for (const std::string_view choice : cut_at(name, '|')) words.emplace_back(choice, "");
  }
  return words;
}

/// The flags of the verb, and those that every verb takes (--version stands alone).
Words flags_of(const Verb& verb) {
  Words words;
  for (const Flag* flag : verb.all_flags()) {
    if (verb.get_parent() != nullptr && flag->is_named("--version")) continue;
    for (const std::string& name : flag->names) words.emplace_back(name, flag->about);
  }
  return words;
}

/// The flag of this name that takes a value, or null.
const Flag* flag_with_value(const Verb& verb, const std::string& name) {
  const Flag* const flag = verb.find_flag(name);
  return flag != nullptr && flag->most > 0 ? flag : nullptr;
}

/// What the last of these words may be, whatever it begins with.
Words offered(const Verb& tool, std::span<const std::string> words) {
  const Verb* verb = &tool;
  const Flag* flag = nullptr;  // whose value is next
  for (const std::string& word : words.first(words.size() - 1)) {
    if (word == "=") continue;  // bash cuts --flag=value at the sign
    flag = flag == nullptr && word.starts_with('-') ? flag_with_value(*verb, word) : nullptr;
    const Verb* const named = verb->verb(word);
    if (named != nullptr && !named->get_group().empty()) verb = named;
  }
  const std::string& last = words.back();
  if (const size_t sign = last.find('='); sign != std::string::npos && last.starts_with('-')) {
    const Flag* const before = flag_with_value(*verb, last.substr(0, sign));
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
  const auto arguments = verb->arguments();
  // A verb's lists of files may be flags' as well (--train a b), so without an argument files are offered.
  if (arguments.empty()) return verbs.empty() ? Words{{":files", ""}} : verbs;
  return values_of(*verb, *arguments.back());
}

}  // namespace

std::string completions(const Verb& tool, const std::vector<std::string>& words) {
  if (words.empty()) return "";
  const std::string last = words.back() == "=" ? "" : words.back();
  std::string text;
  for (const auto& [word, about] : offered(tool, words)) {
    if (word.starts_with(':') || word.starts_with(last))
      text += fmt::format("{}{}{}\n", word, about.empty() ? "" : "\t", about);
  }
  return text;
}

void add_completion(Verb& app) {
  auto shell = std::make_shared<Shell>(Shell::kBash);
  Verb* verb =
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
