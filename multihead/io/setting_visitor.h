// The base of visitors that do not read or write JSON, e.g. the one that makes flags of settings. visit()
// calls a visitor with many types of fields; this base passes all of them on to one function, setting().
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "multihead/io/config.h"

namespace mh {

namespace detail {
/// What an optional holds; another type is itself.
template <class T>
struct InOptional {
  using Type = T;
};
template <class T>
struct InOptional<std::optional<T>> {
  using Type = T;
};
template <class T>
using WithoutOptional = typename InOptional<T>::Type;
}  // namespace detail

/// Derived has setting(name, value, rule, about) for every type of value: `rule` is a Rule for numbers and
/// optional numbers, EnumNames for enums, optional enums and vectors of enums, Presence for the others; `about` is About.
template <class Derived>
class SettingVisitor {
 public:
  template <class T>
    requires detail::kIsNumber<T>
  void operator()(std::string_view name, T& value, Rule<std::type_identity_t<T>> rule = {},
                  const About& about = {}) {
    derived().setting(name, value, rule, about);
  }
  template <class T>
    requires detail::kIsNumber<T>
  void operator()(std::string_view name, std::optional<T>& value, Rule<std::type_identity_t<T>> rule = {},
                  const About& about = {}) {
    derived().setting(name, value, rule, about);
  }
  template <class E>
    requires kHasNames<E>
  void operator()(std::string_view name, E& value, EnumNames<std::type_identity_t<E>> names,
                  const About& about = {}) {
    derived().setting(name, value, names, about);
  }
  template <class E>
    requires kHasNames<E>
  void operator()(std::string_view name, std::optional<E>& value, EnumNames<std::type_identity_t<E>> names,
                  const About& about = {}) {
    derived().setting(name, value, names, about);
  }
  template <class E>
    requires kHasNames<E>
  void operator()(std::string_view name, std::vector<E>& values, EnumNames<std::type_identity_t<E>> names,
                  const About& about = {}) {
    derived().setting(name, values, names, about);
  }
  template <class T>
    requires(!detail::kIsNumber<T> && !kHasNames<T>)
  void operator()(std::string_view name, T& value, Presence presence = {}, const About& about = {}) {
    derived().setting(name, value, presence, about);
  }

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }
};

}  // namespace mh
