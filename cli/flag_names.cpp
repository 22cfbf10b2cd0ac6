#include "cli/flag_names.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace mh::cli {
namespace {

/// Flags that are not called as their fields.
struct OtherName {
  std::string_view verb, field, flag;
};
constexpr OtherName kOtherNames[] = {
    {"demo", "folder", "out"},         {"attribution", "methods", "method"},
    {"generate", "beam_size", "beam"}, {"bleu", "tokenizer", "tokenize"},
    {"bleu", "smoothing", "smooth"},   {"bleu", "smoothing_value", "smooth-value"}};

}  // namespace

std::string flag_of(const CLI::App& verb, std::string_view field) {
  for (const OtherName& other : kOtherNames) {
    if (other.verb == verb.get_name() && other.field == field) return "--" + std::string(other.flag);
  }
  return "--" + flag_name(field);
}

std::string flag_name(std::string_view field) {
  std::string name(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string flag_of(const CLI::App& verb, std::string_view field) {
  for (const OtherName& other : kOtherNames) {
    if (other.verb == verb.get_name() && other.field == field) return "--" + std::string(other.flag);
  }
  return "--" + flag_name(field);
}

std::string with_flags(const CLI::App& verb, std::string_view message) {
  std::string text;
  size_t at = 0;
  while (at < message.size()) {
    const size_t begin = message.find('`', at);
    const size_t end = begin == std::string_view::npos ? begin : message.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    const std::string_view field = message.substr(begin + 1, end - begin - 1);
    const std::string flag = flag_of(verb, field);
    if (verb.get_option_no_throw(flag) != nullptr) {
      text.append(message.substr(at, begin - at)).append(flag);
      at = end + 1;
    } else {  // the second backtick may open a name
      text.append(message.substr(at, end - at));
      at = end;
    }
  }
  return text.append(message.substr(at));
}

const CLI::App& chosen_verb(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

}  // namespace mh::cli
