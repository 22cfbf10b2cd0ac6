// The numbers of options, checked where the library takes them, so that no caller of it has to.
//
//   check_settings(options);  // every number that options.visit() describes
//   check_option("points", points, {.low = 1, .high = 10'000});
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include "multihead/io/config.h"
#include "multihead/io/setting_visitor.h"

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

namespace detail {
class CheckSettings : public SettingVisitor<CheckSettings> {
 public:
  template <class T, class R>
  void setting(std::string_view name, const T& value, const R& rule, const About&) {
    if constexpr (kIsNumber<T>) check_option(name, value, rule);
  }
  template <class T, class R>
  void setting(std::string_view name, const std::optional<T>& value, const R& rule, const About&) {
    if constexpr (kIsNumber<T>) {
      if (value) check_option(name, *value, rule);
    }
  }
};
}  // namespace detail

/// Throws UsageError on the first number that is not within its rule.
template <class Settings>
void check_settings(const Settings& settings) {
  detail::CheckSettings check;
  const_cast<Settings&>(settings).visit(check);  // visit() serves reading, too; checking changes nothing
}

}  // namespace mh
