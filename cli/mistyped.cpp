#include "cli/mistyped.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/shell_words.h"
#include "multihead/base/suggestions.h"

namespace mh::cli {
namespace {

// Flags by what they take, in the order in which they are proposed. A verb has a few of them.
constexpr const char* kFile = "--input";
constexpr const char* kTwoTexts = "--similarity";
constexpr const char* kTexts[] = {"--prompt", "--text"};
constexpr const char* kFolders[] = {"--out", "--model"};

bool is_file(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  return std::filesystem::exists(status) && !std::filesystem::is_directory(status);
}

/// What the verb may have been meant to be given: "-i v.en", "--prompt 'The sky is'". `all`: a text without quotes.
std::vector<std::string> proposals(const Verb& verb, const std::vector<std::string>& strays,
                                   const std::string& all) {
  std::vector<std::string> found;
  const auto propose = [&](const char* name, const std::string& value) {
    const Flag* const flag = verb.find(name);
    if (flag != nullptr && flag->times == 0) found.push_back(flag->names.front() + " " + value);
  };
  if (is_file(strays.front())) {
    propose(kFile, shell_word(strays.front()));
    return found;
  }
  for (const char* const name : kTexts) {
    const Flag* const flag = verb.find(name);
    if (flag != nullptr && flag->count() > 0)  // the first word went to the flag: --prompt The sky is
      return {fmt::format("{} {}", name, shell_word(flag->results().back() + " " + all))};
    propose(name, shell_word(all));
  }
  if (strays.size() == 2) propose(kTwoTexts, shell_word(strays[0]) + " " + shell_word(strays[1]));
  if (all.find_first_of(" \t\n") != std::string::npos) return found;
  for (const char* const flag : kFolders) propose(flag, shell_word(all));
  propose(kFile, shell_word(all));
  return found;
}

}  // namespace

std::string no_verb(const Verb& verb, const std::string& given) {
  const std::vector<std::string> verbs = verb.listed_names();
  if (verbs.empty()) return fmt::format("{} has no verbs, but {} is given", verb.typed_name(), given);
  const std::string all = fmt::format("{} VERB is one of {}", verb.typed_name(), fmt::join(verbs, ", "));
  if (given.empty()) return "no verb is given; " + all;
  const std::string meant = did_you_mean(given, verbs);
  return fmt::format("{} is no verb; {}", given, meant.empty() ? all : meant);
}

std::string no_flag(const Verb& verb, const std::string& given) {
  const Verb* const parent = verb.get_parent();
  if (parent != nullptr && parent->find(given) != nullptr) return flag_of_parent(verb, *parent->find(given));
  std::vector<std::string> names;
  for (const Flag* flag : verb.all_flags()) names.push_back(flag->get_name());
  const std::string meant = given.starts_with("--") ? did_you_mean(given, names) : "";
  return fmt::format("{} is no flag of {}; {}", given, verb.typed_name(),
                     meant.empty() ? fmt::format("see {} --help-all", verb.typed_name()) : meant);
}

std::string flag_of_parent(const Verb& verb, const Flag& flag) {
  const std::string name = verb.typed_name();
  if (flag.is_argument() && flag.count() > 0)
    return fmt::format("{} is one argument too many; see {} --help", flag.results().back(), name);
  return fmt::format("{} is a flag of {} MODEL, not of {}; see {} --help", flag.get_name(),
                     verb.get_parent()->typed_name(), name, name);
}

std::string missing(const Verb& verb, const Flag& flag) {
  if (flag.is_argument() && flag.get_name() == "--model")
    return fmt::format("the model folder is missing; give it as {} MODEL or --model MODEL",
                       verb.typed_name());
  return fmt::format("{} is required; see {} --help", flag.get_name(), verb.typed_name());
}

std::string too_many_arguments(const Verb& verb, const std::vector<std::string>& strays) {
  for (const Flag* argument : verb.arguments()) {  // "heads stat model": the verb was taken for the model
    for (const std::string& given : argument->results()) {
      if (!did_you_mean(given, verb.listed_names()).empty()) return no_verb(verb, given);
    }
  }
  const std::string all = fmt::format("{}", fmt::join(strays, " "));
  const std::vector<std::string> meant = proposals(verb, strays, all);
  const bool is_text = all.find_first_of(" \t\n") != std::string::npos;
  const std::string remedy = !meant.empty() ? fmt::format("did you mean {}?", fmt::join(meant, " or "))
                             : verb.find(kFile) != nullptr && is_text
                                 ? "text is read from a file, -i FILE, or from standard input"
                                 : fmt::format("see {} --help", verb.typed_name());
  return fmt::format("{} is one argument too many; {}", shell_word(strays.front()), remedy);
}

}  // namespace mh::cli
