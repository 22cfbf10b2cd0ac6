#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace mh::cli {
namespace {

// As the script keeps it: a mark, or the words themselves.
std::string bash_value(const CompletedValue& value) {
  switch (value.kind) {
    case CompletedKind::kNone:
    case CompletedKind::kFree:
      return ":none";
    case CompletedKind::kFiles:
      return ":files";
    case CompletedKind::kFolders:
      return ":folders";
    case CompletedKind::kWords:
      break;
  }
  return fmt::format("{}", fmt::join(value.words, " "));
}

// " data grammar": what the script collects.
std::string bash_path(const CompletedVerb& verb) {
  return verb.path.empty() ? "" : " " + verb.path;
}

constexpr const char* kBashBegin = R"(# Completes multihead in bash; printed by: multihead completion bash
_multihead() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev= verb= verbs= flags= argument= value= i
  ((COMP_CWORD > 0)) && prev=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $cur == = ]]; then # bash cuts --flag=value at the sign
    cur=
  elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$verb ${COMP_WORDS[i]}" in
)";
constexpr const char* kBashEnd = R"(  if [[ -z $value || $cur == -* ]]; then
    if [[ $cur == -* ]]; then
      value=$flags
    elif [[ -n $verbs ]]; then
      value=$verbs
    else
      value=$argument
    fi
  fi
  COMPREPLY=()
  case $value in
    :none) ;;
    :files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      ;;
    :folders)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$value" -- "$cur") ;;
  esac
}
complete -F _multihead multihead
)";

}  // namespace

std::string bash_completion(const std::vector<CompletedVerb>& verbs) {
  std::string text = kBashBegin;
  for (const CompletedVerb& verb : verbs) {
    if (!verb.path.empty()) text += fmt::format("      '{0}') verb='{0}' ;;\n", bash_path(verb));
  }
  text += "    esac\n  done\n  case $verb in\n";
  for (const CompletedVerb& verb : verbs) {
    std::vector<std::string> flags;
    for (const CompletedFlag& flag : verb.flags)
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    // A verb's lists of files may be flags' as well (--train a b), so without an argument files are offered.
    text += fmt::format("    '{}')\n      verbs='{}'\n      flags='{}'\n      argument='{}'\n      ;;\n",
                        bash_path(verb), fmt::join(verb.verbs, " "), fmt::join(flags, " "),
                        verb.argument.kind == CompletedKind::kNone ? ":files" : bash_value(verb.argument));
  }
  text += "  esac\n  case \"$verb $prev\" in\n";
  for (const CompletedVerb& verb : verbs) {
    for (const CompletedFlag& flag : verb.flags) {
      if (flag.value.kind == CompletedKind::kNone) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names)
        patterns.push_back(fmt::format("'{} {}'", bash_path(verb), name));
      text += fmt::format("    {}) value='{}' ;;\n", fmt::join(patterns, " | "), bash_value(flag.value));
    }
  }
  return text + "  esac\n" + kBashEnd;
}

}  // namespace mh::cli
