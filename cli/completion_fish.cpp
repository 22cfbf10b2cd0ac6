#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completion.h"

namespace mh::cli {
namespace {

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_value(const CompletedValue& value) {
  switch (value.kind) {
    case CompletedKind::kNone:
      return "";
    case CompletedKind::kFree:
      return " -x";
    case CompletedKind::kFiles:
      return " -r -F";
    case CompletedKind::kFolders:
      return " -x -a '(__fish_complete_directories)'";
    case CompletedKind::kWords:
      break;
  }
  return fmt::format(" -x -a '{}'", fmt::join(value.words, " "));
}

std::string fish_argument(const CompletedValue& value) {
  return value.kind == CompletedKind::kFiles ? " -F" : fish_value(value);
}

constexpr const char* kFishBegin = R"(# Completes multihead in fish; printed by: multihead completion fish
function __multihead_verb
  set -l verb ''
  for word in (commandline -opc)[2..-1]
    switch "$verb $word"
      case)";
constexpr const char* kFishMiddle = R"(
        set verb "$verb $word"
    end
  end
  echo "$verb"
end
function __multihead_at
  test (__multihead_verb) = "$argv[1]"
end
complete -c multihead -f
)";

}  // namespace

std::string fish_completion(const std::vector<CompletedVerb>& verbs) {
  std::string text = kFishBegin;
  for (const CompletedVerb& verb : verbs) {
    if (!verb.path.empty()) text += fmt::format(" ' {}'", verb.path);
  }
  text += kFishMiddle;
  for (const CompletedVerb& verb : verbs) {
    const std::string here = fmt::format("complete -c multihead -n \"__multihead_at '{}{}'\"",
                                         verb.path.empty() ? "" : " ", verb.path);
    for (const std::string& name : verb.verbs) {
      text += fmt::format("{} -a {} -d {}\n", here, name, fish_quoted(next_verb(verbs, verb, name).about));
    }
    if (verb.argument.kind != CompletedKind::kNone) text += here + fish_argument(verb.argument) + "\n";
    for (const CompletedFlag& flag : verb.flags) {
      std::string names;
      for (const std::string& name : flag.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += fmt::format("{}{}{} -d {}\n", here, names,
                          flag.value.optional ? fish_argument(flag.value) : fish_value(flag.value),
                          fish_quoted(flag.about));
    }
  }
  return text;
}

}  // namespace mh::cli
