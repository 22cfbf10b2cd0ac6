// Flags that check what they are given: an error names the flag, what it takes and what was found.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "cli/verb.h"
#include "multihead/base/enum_names.h"
#include "multihead/io/config.h"
#include "multihead/io/setting_visitor.h"

namespace mh::cli {

/// The number that is all of the text; nothing: "1.5" for an integer, "-1" for a seed, what is too large.
template <class T>
std::optional<T> number_in(const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// Refuses what is no number in full or not within `rule`.
template <class T>
void check_number(Flag* flag, Rule<T> rule) {
  flag->type_name(std::is_floating_point_v<T> ? "X" : "N")->check([rule](const std::string& text) {
    const std::optional<T> value = number_in<T>(text);
    if (value && *value >= rule.low && *value <= rule.high) return std::string();
    return fmt::format("expected {}, got {}", numbers_within(rule.low, rule.high),
                       text.empty() ? "nothing" : text);
  });
}

/// How help writes a default.
template <class T>
std::string default_text(const T& value) {
  if constexpr (std::is_floating_point_v<T>) return fmt::format("{:g}", value);
  return fmt::format("{}", value);
}

/// A flag for a number.
template <class T>
Flag* add_number(Verb& verb, const std::string& name, T& value, Rule<std::type_identity_t<T>> rule,
                 const std::string& help) {
  Flag* const flag = verb.add_option(name, help)->default_str(default_text(value));
  check_number(flag, rule);
  return flag->each([&value](const std::string& text) { value = *number_in<T>(text); });
}

/// A flag for a size from 1 to `high`; its variable is 0 while it is not given.
template <class T>
Flag* add_size(Verb& verb, const std::string& name, T& value, std::type_identity_t<T> high,
               const std::string& help) {
  return add_number(verb, name, value, {.low = 1, .high = high}, help)->default_str("");
}

/// What the name stands for; REQUIRES: it is one of them.
template <class Names>
auto named(const std::string& text, const Names& names) {
  return std::find_if(names.begin(), names.end(), [&](const auto& known) { return known.first == text; })
      ->second;
}

/// Refuses what is none of these names. `now`: the default.
template <class E>
void take_names(Flag* flag, std::optional<E> now, EnumNames<std::type_identity_t<E>> names) {
  std::vector<std::string> known;
  for (const auto& [name, meaning] : names) {
    known.emplace_back(name);
    if (meaning == now) flag->default_str(known.back());
  }
  const std::string all = names_listed(names);
  flag->type_name(all)->check([known, all](const std::string& text) {
    if (std::find(known.begin(), known.end(), text) != known.end()) return std::string();
    return fmt::format("expected {}, got {}", all, text.empty() ? "nothing" : text);
  });
}

/// A flag for one of several names.
template <class T>
Flag* add_choice(Verb& verb, const std::string& name, T& value,
                 EnumNames<mh::detail::WithoutOptional<T>> names, const std::string& help) {
  Flag* const flag = verb.add_option(name, help);
  take_names(flag, std::optional<mh::detail::WithoutOptional<T>>(value), names);
  return flag->each(
      [&value, known = std::vector(names)](const std::string& text) { value = named(text, known); });
}

}  // namespace mh::cli
