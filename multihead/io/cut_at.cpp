#include "multihead/io/cut_at.h"

#include <algorithm>

namespace mh {

std::vector<std::string_view> cut_at(std::string_view text, char sign) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(sign, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace mh
