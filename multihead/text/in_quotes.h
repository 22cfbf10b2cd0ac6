// Text from outside, made fit for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace mh {

/// The text in quotes, its control characters escaped, cut after 40 characters. Anything goes in; UTF-8 comes
/// out.
std::string in_quotes(std::string_view text);

}  // namespace mh
