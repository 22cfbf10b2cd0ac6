// Checks UTF-8. Every text from outside is checked once, where it enters the library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mh {

/// Returns the index of the first byte at which no well-formed UTF-8 sequence begins (Unicode 15, table
/// 3-7: no overlong forms, no surrogates, nothing above U+10FFFF), or std::string_view::npos when all of
/// `bytes` is UTF-8.
size_t first_invalid_utf8(std::string_view bytes);

/// What errors say of it: "byte 3 (0xff) is not UTF-8", counted from 1; empty when all of `bytes` is UTF-8.
std::string utf8_problem(std::string_view bytes);

/// Characters that cannot stand in a line on a terminal: control characters, those that end a line, and those
/// that change the direction of writing.
bool is_unprintable(char32_t character);

}  // namespace mh
