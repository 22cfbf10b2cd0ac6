// The numbers of options, checked where the library takes them, so that no door to it has to.
//
//   check_option("points", options.points, {.low = 1, .high = 10'000});
#pragma once

#include <string_view>
#include <type_traits>

#include "multihead/io/config.h"

namespace mh {

namespace detail {
/// Throws UsageError: "`points`: expected an integer from 1 to 10000, got 0". T: as numbers_within().
template <class T>
[[noreturn]] void refuse_option(std::string_view name, T value, Rule<T> rule);
}  // namespace detail

/// Throws UsageError, naming the option, unless the value is within the rule; nan is within none.
template <class T>
void check_option(std::string_view name, T value, Rule<std::type_identity_t<T>> rule) {
  if (!(value >= rule.low && value <= rule.high)) detail::refuse_option(name, value, rule);
}

}  // namespace mh
