// Text cut at a sign: the fields of a line, the lines of a text.
#pragma once

#include <string_view>
#include <vector>

namespace mh {

/// "a|b" -> "a", "b": one more part than there are signs, of the text that the view is of.
std::vector<std::string_view> cut_at(std::string_view text, char sign);

}  // namespace mh
