// Text for a terminal: how many columns it takes, cut to a cell, broken into lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// A character of a UTF-8 text, and how many columns of a terminal it takes.
struct TerminalCharacter {
  std::string_view bytes;
  int width;
};

/// Views of `text`.
std::vector<TerminalCharacter> terminal_characters(std::string_view text);
/// Returns how many columns of a terminal a UTF-8 text takes: 2 for wide East Asian characters, 0 for
/// combining marks.
int display_width(std::string_view text);

/// Prepares text for a cell: characters that is_unprintable() (base/utf8.h) become dots, and it is cut to `width` columns of a terminal
/// with an ellipsis.
std::string cell_text(std::string_view text, int width);
/// Words of `text` in lines of at most `width` columns, each begun by `indent`, all but the first by
/// `further` as well.
std::string wrapped(const std::string& text, const std::string& indent = "", size_t width = 80,
                    const std::string& further = "");
/// 1234567 -> "1,234,567".
std::string grouped(int64_t number);

}  // namespace mh
