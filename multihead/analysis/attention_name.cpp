#include "multihead/analysis/attention_name.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "multihead/base/error.h"

namespace mh {
namespace {

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || next != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace

AttentionPlace attention_place(std::string_view attention) {
  const size_t first = attention.find('.'), second = attention.find('.', first + 1);
  if (first != std::string_view::npos && second != std::string_view::npos) {
    const std::string_view stack = attention.substr(0, first), what = attention.substr(second + 1);
    if (const auto layer = whole_number(attention.substr(first + 1, second - first - 1))) {
      if (stack == "encoder" && what == "self_attention") return {AttentionKind::kEncoderSelf, *layer};
      if (stack == "decoder" && what == "self_attention") return {AttentionKind::kDecoderSelf, *layer};
      if (stack == "decoder" && what == "cross_attention") return {AttentionKind::kCross, *layer};
    }
  }
  throw UsageError(
      fmt::format("attention '{}': expected a name such as encoder.3.self_attention or "
                  "decoder.0.cross_attention",
                  attention));
}

HeadName parse_head_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  const auto head = dot == std::string_view::npos ? std::nullopt : whole_number(name.substr(dot + 1));
  if (!head) {
    throw UsageError(
        fmt::format("head '{}': expected an attention and a head's number, such as "
                    "encoder.3.self_attention.1",
                    name));
  }
  HeadName parsed{std::string(name.substr(0, dot)), *head};
  attention_place(parsed.attention);
  return parsed;
}

}  // namespace mh
