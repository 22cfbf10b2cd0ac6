#include "cli/text_pairs.h"

#include <fmt/format.h>

#include <limits>

#include "cli/setting_flags.h"
#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"
#include "multihead/io/lines.h"

namespace mh::cli {

void add_text_pair_flags(Verb& verb, TextPairFlags& flags, const std::string& what) {
  auto* text = verb.add_option("--text", flags.texts, what + "; may be given again")->again();
  verb.add_option("--text-pair", flags.second_texts,
                  "A second text for each --text, which the model reads together with it")
      ->again()
      ->needs(text);
  add_text_flags(verb, flags.text);
  verb.add_option("--input-pair", flags.pairs, "The second texts of --input, line by line")->excludes(text);
  verb.get_option("--input")
      ->description("Read the texts from this file (gzip or not), one a line, instead of standard input")
      ->excludes(text);
  name_values(verb, "TEXT", {"--text", "--text-pair"});
  name_values(verb, "FILE", {"--input-pair"});
  rare_flags(verb, {"--input-pair"});
}

TextPairs read_text_pairs(const TextPairFlags& flags) {
  for (const std::string& text : flags.texts) check_utf8(text, "--text");
  for (const std::string& text : flags.second_texts) check_utf8(text, "--text-pair");
  if (flags.texts.empty()) {
    TextPairs texts{.firsts = read_text(flags.text.input), .seconds = {}};
    if (flags.pairs.empty()) return texts;
    texts.seconds = read_text(flags.pairs);
    check_line_for_each(flags.pairs, texts.seconds.size(),
                        {.name = name_of(flags.text.input), .count = texts.firsts.size()});
    return texts;
  }
  if (!flags.second_texts.empty() && flags.second_texts.size() != flags.texts.size()) {
    throw UsageError(fmt::format("--text-pair: expected one for each --text, got {} for {}",
                                 flags.second_texts.size(), flags.texts.size()));
  }
  return {.firsts = flags.texts, .seconds = flags.second_texts};
}

std::string text_heading(const TextPairs& texts, size_t i, const std::string& place) {
  const std::string text = texts.firsts[i] + (texts.seconds.empty() ? "" : " | " + texts.seconds[i]);
  return wrapped(cell_text(fmt::format("{}: {}", place, text), std::numeric_limits<int>::max()));
}

LinesFrom lines_from(const TextPairFlags& flags) {
  return flags.texts.empty() ? LinesFrom{.name = name_of(flags.text.input)} : LinesFrom{.one = "text"};
}

}  // namespace mh::cli
