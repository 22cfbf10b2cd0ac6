#include "multihead/data/alignment.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/data/whole_number.h"
#include "multihead/text/in_quotes.h"

namespace mh {

Alignment parse_pharaoh(std::string_view line, std::string_view name, size_t line_number) {
  Alignment alignment;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return alignment;
    line.remove_prefix(begin);
    const std::string_view item = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(item.size());
    const size_t dash = item.find('-');
    const auto source = whole_number(item.substr(0, dash));
    const auto target = dash == std::string_view::npos ? std::nullopt : whole_number(item.substr(dash + 1));
    if (!source || !target) {
      throw FormatError(fmt::format("{}:{}: expected word pairs like 0-0 1-2 (counted from 0), got {}", name,
                                    line_number, in_quotes(item)));
    }
    alignment.emplace_back(*source, *target);
  }
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
