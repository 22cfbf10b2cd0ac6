// Quotes text from outside so that it fits into a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace mh {

/// Returns the text in quotes, with control characters escaped, cut after 40 characters. The input may be
/// any bytes; the result is UTF-8.
std::string in_quotes(std::string_view text);

}  // namespace mh
