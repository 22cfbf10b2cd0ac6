// Text cut at a character: the fields of a line, the lines of a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// What stands between the separators, one more than there are of them; empty text has one empty part.
std::vector<std::string> split_at(std::string_view text, char separator);

}  // namespace mh
