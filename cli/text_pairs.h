// The texts of verbs that read one or two together: given as flags, or as lines of files.
#pragma once

#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/verb.h"
#include "multihead/text/long_lines.h"

namespace mh::cli {

struct TextPairFlags {
  TextFlags text;
  std::vector<std::string> texts, second_texts;  // of the flags
  std::string pairs;                             // the file of second texts
};

struct TextPairs {
  std::vector<std::string> firsts, seconds;  // as many seconds, or none
};

/// Adds --text, --text-pair, --input, --output and --input-pair. what: of a text, for the help.
void add_text_pair_flags(Verb& verb, TextPairFlags& flags, const std::string& what);
/// Throws UsageError, FormatError and FileError.
TextPairs read_text_pairs(const TextPairFlags& flags);
/// A line above what was found in text i: "text 2: the first | the second". place: what comes before the colon.
std::string text_heading(const TextPairs& texts, size_t i, const std::string& place);
/// What errors call the texts.
LinesFrom lines_from(const TextPairFlags& flags);

}  // namespace mh::cli
