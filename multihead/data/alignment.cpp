#include "multihead/data/alignment.h"

#include <fmt/format.h>

#include <charconv>

#include "multihead/base/error.h"
#include "multihead/io/lines.h"

namespace mh {
namespace {

/// A number without sign that fits, or -1.
int32_t number(std::string_view text) {
  int32_t value = -1;
  if (text.empty() || text[0] == '-' || text[0] == '+') return -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

Alignment parse_pharaoh(std::string_view line, std::string_view name, size_t line_number) {
  Alignment alignment;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return alignment;
    line.remove_prefix(begin);
    const std::string_view item = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(item.size());
    const size_t dash = item.find('-');
    const int32_t source = number(item.substr(0, dash));
    const int32_t target = dash == std::string_view::npos ? -1 : number(item.substr(dash + 1));
    if (source < 0 || target < 0) {
      throw FormatError(fmt::format("{}:{}: expected word pairs like 0-0 1-2 (counted from 0), found \"{}\"",
                                    name, line_number, item.substr(0, 40)));
    }
    alignment.emplace_back(source, target);
  }
}

std::vector<Alignment> read_pharaoh(const std::filesystem::path& path) {
  std::vector<Alignment> alignments;
  for (const std::string& line : read_lines(path)) {
    alignments.push_back(parse_pharaoh(line, path.string(), alignments.size() + 1));
  }
  return alignments;
}

std::string format_pharaoh(const Alignment& alignment) {
  std::string line;
  for (const auto& [source, target] : alignment) {
    fmt::format_to(std::back_inserter(line), "{}{}-{}", line.empty() ? "" : " ", source, target);
  }
  return line;
}

void check_alignment(const Alignment& alignment, size_t source_words, size_t target_words,
                     std::string_view name, size_t line_number) {
  for (const auto& [source, target] : alignment) {
    const bool inside = source >= 0 && static_cast<size_t>(source) < source_words && target >= 0 &&
                        static_cast<size_t>(target) < target_words;
    if (!inside) {
      throw FormatError(
          fmt::format("{}:{}: {}-{} points outside a sentence of {} words and its translation of {}", name,
                      line_number, source, target, source_words, target_words));
    }
  }
}

}  // namespace mh
