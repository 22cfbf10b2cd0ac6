#include "cli/error_line.h"

#include <fmt/format.h>

#include "multihead/text/unicode.h"

namespace mh::cli {

std::string printable_line(std::string_view text) {
  return printable(text);
}

std::string error_line(std::string_view text, size_t most) {
  std::string line = printable_line(text);
  size_t characters = 0;
  for (size_t at = 0; at < line.size(); ++characters) next_character(line, at);
  if (characters <= most) return line;
  const size_t kept = most / 2;  // of each end
  size_t begin = 0, number = 0;
  for (; number < kept; ++number) next_character(line, begin);
  size_t end = begin;
  for (; number < characters - kept; ++number) next_character(line, end);
  return fmt::format("{} [{} characters left out] {}", line.substr(0, begin), characters - 2 * kept,
                     line.substr(end));
}

}  // namespace mh::cli
