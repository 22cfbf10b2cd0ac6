#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mh {

/// The number that `text` is, from its first character to its last, without a sign; nothing when it is none
/// or too large.
inline std::optional<int32_t> whole_number(std::string_view text) {
  if (text.empty() || text[0] == '-') return std::nullopt;  // from_chars takes no plus
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace mh
