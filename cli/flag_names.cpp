#include "cli/flag_names.h"

#include <algorithm>

#include "cli/verb.h"

namespace mh::cli {
namespace {

/// Flags that are not called as their fields; of all verbs where none is named.
struct OtherName {
  std::string_view verb, field, flag;
};
constexpr OtherName kOtherNames[] = {
    {"demo", "folder", "out"},
    {"convert", "source_language", "source-language"},  // --to is taken there
    {"convert", "target_language", "target-language"},
    {"importance", "source_language", "source-language"},
    {"importance", "target_language", "target-language"},
    {"", "source_language", "from"},
    {"", "target_language", "to"},
    {"attribution", "methods", "method"},
    {"embed", "prompt", "prompt-text"},  // that of generate is the text itself
    {"bleu", "tokenizer", "tokenize"},
    {"bleu", "smoothing", "smooth"},
    {"bleu", "smoothing_value", "smooth-value"}};

}  // namespace

std::string flag_of(const Verb& verb, std::string_view field) {
  return "--" + flag_name(verb.get_name(), field);
}

std::string flag_name(std::string_view verb, std::string_view field) {
  for (const OtherName& other : kOtherNames) {
    if ((other.verb.empty() || other.verb == verb) && other.field == field) return std::string(other.flag);
  }
  return flag_name(field);
}

std::string flag_name(std::string_view field) {
  std::string name(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string with_flags(const Verb& verb, std::string_view message) {
  std::string text;
  size_t at = 0;
  while (at < message.size()) {
    const size_t begin = message.find('`', at);
    const size_t end = begin == std::string_view::npos ? begin : message.find('`', begin + 1);
    if (end == std::string_view::npos) break;
    const std::string_view field = message.substr(begin + 1, end - begin - 1);
    const std::string flag = flag_of(verb, field);
    if (verb.find(flag) != nullptr) {
      text.append(message.substr(at, begin - at)).append(flag);
      at = end + 1;
    } else {  // the second backtick may open a name
      text.append(message.substr(at, end - at));
      at = end;
    }
  }
  return text.append(message.substr(at));
}

}  // namespace mh::cli
