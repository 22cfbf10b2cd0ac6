#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "cli/completion.h"

namespace mh::cli {
namespace {

std::string zsh_function(const std::string& path) {
  std::string name = "_multihead" + (path.empty() ? "" : "_" + path);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

// In single quotes, where _arguments reads colons and brackets.
std::string zsh_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\'') {
      safe += "'\\''";
      continue;
    }
    if (std::string_view("[]:\\").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string zsh_action(const CompletedValue& value) {
  switch (value.kind) {
    case CompletedKind::kFiles:
      return "_files";
    case CompletedKind::kFolders:
      return "_files -/";
    case CompletedKind::kWords:
      return fmt::format("({})", fmt::join(value.words, " "));
    case CompletedKind::kNone:
    case CompletedKind::kFree:
      break;
  }
  return " ";
}

std::string zsh_specs(const CompletedFlag& flag) {
  std::string specs;
  for (const std::string& name : flag.names) {
    const bool long_name = name.starts_with("--"), value = flag.value.kind != CompletedKind::kNone;
    specs += fmt::format(" \\\n    '{}{}{}[{}]{}'", flag.again ? "*" : "", name,
                         !value      ? ""
                         : long_name ? "="
                                     : "+",
                         zsh_text(flag.about),
                         value ? fmt::format("{}:{}:{}", flag.value.optional ? ":" : "",
                                             zsh_text(flag.value_name), zsh_action(flag.value))
                               : "");
  }
  return specs;
}

}  // namespace

std::string zsh_completion(const std::vector<CompletedVerb>& verbs) {
  std::string text =
      "#compdef multihead\n# Completes multihead in zsh; printed by: multihead completion zsh\n";
  for (const CompletedVerb& verb : verbs) {
    text += fmt::format("{}() {{\n  local line state\n  _arguments -C", zsh_function(verb.path));
    for (const CompletedFlag& flag : verb.flags) text += zsh_specs(flag);
    if (verb.verbs.empty()) {
      const bool none = verb.argument.kind == CompletedKind::kNone;
      text += none ? "\n}\n" : fmt::format(" \\\n    '*:argument:{}'\n}}\n", zsh_action(verb.argument));
      continue;
    }
    std::string names, calls;
    for (const std::string& name : verb.verbs) {
      const CompletedVerb& next = next_verb(verbs, verb, name);
      names += fmt::format(" {}\\:\"{}\"", name, zsh_text(next.about));
      calls += fmt::format("    {}) {} ;;\n", name, zsh_function(next.path));
    }
    text += fmt::format(
        " \\\n    '1:verb:(({}))' \\\n    '*::argument:->rest'\n  [[ $state == rest ]] || return\n  case "
        "$line[1] in\n{}  esac\n}}\n",
        names.substr(1), calls);
  }
  return text +
         "if [[ $funcstack[1] == _multihead ]]; then\n  _multihead \"$@\"\nelse\n  compdef _multihead "
         "multihead\nfi\n";
}

}  // namespace mh::cli
