// Quotes text from outside so that it fits into a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mh {

/// Enough for names that must be read to their ends, such as those of Python classes, and for regular
/// expressions.
constexpr size_t kWholeName = 200;

/// Returns the text in quotes, with what is_unprintable() escaped, cut after `most` characters. The input may be
/// any bytes; the result is UTF-8.
std::string in_quotes(std::string_view text, size_t most = 40);

}  // namespace mh
