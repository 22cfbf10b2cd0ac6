// The numbers of options, checked where the library takes them, so that no door to it has to.
//
//   check_option("points", options.points, {.low = 1, .high = 10'000});
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "multihead/base/error.h"
#include "multihead/io/config.h"

namespace mh {

/// Throws UsageError, naming the option, unless the value is within the rule; nan is within none.
template <class T>
void check_option(std::string_view name, T value, Rule<std::type_identity_t<T>> rule) {
  if (value >= rule.low && value <= rule.high) return;
  throw UsageError(
      fmt::format("`{}`: expected {}, got {}", name, numbers_within(rule.low, rule.high), value));
}

}  // namespace mh
