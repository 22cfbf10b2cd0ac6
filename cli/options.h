// Flags that check what they are given: an error names the flag, what it takes and what was found.
#pragma once

#include <fmt/format.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "multihead/io/config.h"

namespace mh::cli {

/// Refuses what is no number in full ("1.5" for an integer, "-1" for a seed, "nan") or not within `rule`.
template <class T>
void check_number(CLI::Option* option, Rule<T> rule) {
  option->type_name(std::is_floating_point_v<T> ? "X" : "N");
  option->check([rule](const std::string& text) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value >= rule.low && value <= rule.high) return std::string();
    return fmt::format("expected {}, got {}", numbers_within(rule.low, rule.high),
                       text.empty() ? "nothing" : text);
  });
}

/// A flag for a number.
template <class T>
CLI::Option* add_number(CLI::App& verb, const std::string& flag, T& value, Rule<std::type_identity_t<T>> rule,
                        const std::string& help) {
  CLI::Option* option = verb.add_option(flag, value, help)->capture_default_str();
  check_number(option, rule);
  return option;
}

/// A flag for a size from 1 to `high`; its variable is 0 while it is not given.
template <class T>
CLI::Option* add_size(CLI::App& verb, const std::string& flag, T& value, std::type_identity_t<T> high,
                      const std::string& help) {
  return add_number(verb, flag, value, {.low = 1, .high = high}, help)->default_str("");
}

/// Makes `option`, whose variable is an enum that holds `value` now (or nothing yet), take one of these
/// names. Of another type with names the variable is the place of the value among them.
template <class E>
void take_names(CLI::Option* option, std::optional<E> value, EnumNames<std::type_identity_t<E>> names) {
  const std::string all = names_listed(names);
  const std::vector<std::pair<std::string, E>> known(names.begin(), names.end());
  const auto to_number = [known, all](std::string& text) {
    for (size_t i = 0; i < known.size(); ++i) {
      if (text != known[i].first) continue;
      if constexpr (std::is_enum_v<E>) {
        text = std::to_string(static_cast<std::underlying_type_t<E>>(known[i].second));
      } else {
        text = std::to_string(i);
      }
      return std::string();
    }
    return fmt::format("expected {}, got {}", all, text.empty() ? "nothing" : text);
  };
  option->transform(CLI::Validator(to_number, ""))->type_name(all);
  if (value) option->default_str(mh::name_of(*value, names));
}

/// A flag for one of several names.
template <class E>
CLI::Option* add_choice(CLI::App& verb, const std::string& flag, E& value,
                        EnumNames<std::type_identity_t<E>> names, const std::string& help) {
  CLI::Option* option = verb.add_option(flag, value, help);
  take_names(option, std::optional<E>(value), names);
  return option;
}

}  // namespace mh::cli
