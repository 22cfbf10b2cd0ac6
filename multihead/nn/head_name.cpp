#include "multihead/nn/head_name.h"

#include <fmt/format.h>

#include <charconv>

#include "multihead/base/error.h"

namespace mh {

std::optional<int> whole_number_in(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || next != end || number < 0) return std::nullopt;
  return number;
}

HeadName parse_head_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  const auto head =
      dot == std::string_view::npos || dot == 0 ? std::nullopt : whole_number_in(name.substr(dot + 1));
  if (!head || *head > kLargestHeadNumber) {
    throw UsageError(
        fmt::format("head '{}': expected an attention and a head's number, such as "
                    "encoder.3.self_attention.1",
                    name));
  }
  return {std::string(name.substr(0, dot)), *head};
}

}  // namespace mh
