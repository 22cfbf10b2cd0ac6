#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mh {

/// Returns the number if all of `text` is a whole number without a sign that fits; else nothing.
inline std::optional<int32_t> whole_number(std::string_view text) {
  if (text.empty() || text[0] == '-') return std::nullopt;  // from_chars takes no plus
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace mh
