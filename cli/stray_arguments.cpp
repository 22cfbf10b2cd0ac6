#include "cli/stray_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/help_format.h"
#include "cli/shell_words.h"

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

bool is_one_word(std::string_view text) {
  return text.find_first_of(" \t\n") == std::string_view::npos;
}

/// A text that was given without quotes.
std::string all_of(const std::vector<std::string>& strays) {
  return fmt::format("{}", fmt::join(strays, " "));
}

/// "-i" of -i,--input.
std::string short_name(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_snames();
  return names.empty() ? option.get_name() : "-" + names.front();
}

/// What the verb may have been meant to be given: "-i v.en", "--prompt 'The sky is'".
std::vector<std::string> proposals(const CLI::App& verb, const std::vector<std::string>& strays) {
  std::vector<std::string> found;
  const auto propose = [&](const char* flag, const std::string& value) {
    const CLI::Option* const option = verb.get_option_no_throw(flag);
    if (option != nullptr && option->count() == 0) found.push_back(short_name(*option) + " " + value);
  };
  if (is_file(strays.front())) {
    propose(kFile, shell_word(strays.front()));
    return found;
  }
  const std::string all = all_of(strays);
  for (const char* const flag : kTexts) {
    const CLI::Option* const option = verb.get_option_no_throw(flag);
    if (option == nullptr) continue;
    if (option->count() == 0) {
      propose(flag, shell_word(all));
    } else {  // the first word went to the flag: --prompt The sky is
      return {fmt::format("{} {}", flag, shell_word(option->results().back() + " " + all))};
    }
  }
  if (strays.size() == 2) propose(kTwoTexts, shell_word(strays[0]) + " " + shell_word(strays[1]));
  if (!is_one_word(all)) return found;
  for (const char* const flag : kFolders) propose(flag, shell_word(all));
  propose(kFile, shell_word(all));
  return found;
}

}  // namespace

std::string too_many_arguments(const CLI::App& verb, const std::vector<std::string>& strays) {
  std::string remedy;
  if (const std::vector<std::string> meant = proposals(verb, strays); !meant.empty()) {
    remedy = fmt::format("did you mean {}?", fmt::join(meant, " or "));
  } else if (verb.get_option_no_throw(kFile) != nullptr && !is_one_word(all_of(strays))) {
    remedy = "text is read from a file, -i FILE, or from standard input";
  } else {
    remedy = fmt::format("see {} --help", typed_name(verb));
  }
  return fmt::format("{} is one argument too many; {}", shell_word(strays.front()), remedy);
}

}  // namespace mh::cli
