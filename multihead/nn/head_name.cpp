#include "multihead/nn/head_name.h"

#include <fmt/format.h>

#include <charconv>

#include "multihead/base/error.h"

namespace mh {
namespace {

std::optional<HeadName> head_name_in(std::string_view text) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto head = whole_number_in(text.substr(dot + 1));
  if (!head || *head > kLargestHeadNumber) return std::nullopt;
  return HeadName{std::string(text.substr(0, dot)), *head};
}

}  // namespace

bool fits(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0;
  size_t star = std::string_view::npos, taken = 0;  // the last *, and the text up to where it reaches
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {  // that * takes one character more
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::optional<int> whole_number_in(std::string_view text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || next != end || number < 0) return std::nullopt;
  return number;
}

HeadName parse_head_name(std::string_view name) {
  if (auto head = head_name_in(name)) return *std::move(head);
  throw UsageError(
      fmt::format("head '{}': expected an attention and a head's number, such as "
                  "encoder.3.self_attention.1",
                  name));
}

HeadPattern::HeadPattern(std::string_view text) : text_(text) {
  if (text.find('*') != std::string_view::npos) return;
  one_ = head_name_in(text);
  if (one_) return;
  throw UsageError(
      fmt::format("head '{}': expected an attention and a head's number, such as "
                  "encoder.3.self_attention.1, or * for any, such as encoder.3.self_attention.*",
                  text));
}

bool HeadPattern::matches(std::string_view attention, int head) const {
  if (one_) return one_->head == head && one_->attention == attention;
  return fits(fmt::format("{}.{}", attention, head), text_);
}

}  // namespace mh
