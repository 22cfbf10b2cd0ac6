// What a person is told when something went wrong: one line that is safe to print, whatever names stand in it.
#pragma once

#include <string>
#include <string_view>

namespace mh::cli {

/// Characters that would end the line, move the cursor or turn the writing round become \u001b and the like,
/// bytes that are not UTF-8 become U+FFFD. For names from files in tables, too.
std::string printable_line(std::string_view text);
/// The same, and of a text of more than `most` characters the middle is left out, with their number.
std::string error_line(std::string_view text, size_t most = 1000);

}  // namespace mh::cli
