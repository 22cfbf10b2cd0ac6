#include "cli/side_by_side.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "multihead/base/terminal_text.h"
#include "multihead/text/unicode.h"

namespace mh::cli {
namespace {

constexpr int kMargin = 2, kGap = 2;

std::vector<std::string> wrapped_lines(std::string_view text, int width) {
  const std::string printable = cell_text(text, std::numeric_limits<int>::max());
  std::vector<std::string> lines;
  std::string line, word;
  const auto add_word = [&] {
    if (word.empty()) return;
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    word.clear();
  };
  for (size_t at = 0; at < printable.size();) {
    const size_t begin = at;
    if (next_character(printable, at) == ' ') {
      add_word();
      continue;
    }
    const std::string character = printable.substr(begin, at - begin);
    if (display_width(word) + display_width(character) > width) add_word();
    word += character;
  }
  add_word();
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

std::string side_by_side(std::string_view left, std::string_view right, int width) {
  const int half = (width - kMargin - kGap) / 2;
  const std::vector<std::string> a = wrapped_lines(left, half), b = wrapped_lines(right, half);
  std::string text;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    std::string line = std::string(kMargin, ' ') + (i < a.size() ? a[i] : "");
    if (i < b.size()) {
      const int used = display_width(line);
      line += std::string(static_cast<size_t>(std::max(kMargin + half + kGap - used, 0)), ' ') + b[i];
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace mh::cli
