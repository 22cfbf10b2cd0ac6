// The names of an enum's values, or of another type's few, in files and flags. One table for each enum; whoever reads or writes a name
// uses it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mh {

template <class E>
using EnumNames = std::initializer_list<std::pair<const char*, E>>;

/// Whether the values of a type have a table of names, as those of enums do.
template <class T>
inline constexpr bool kHasNames = std::is_enum_v<T>;

/// Returns the first name of a value; an empty text when it has none.
template <class E>
constexpr const char* name_of(E value, EnumNames<std::type_identity_t<E>> names) {
  for (const auto& [name, meaning] : names) {
    if (meaning == value) return name;
  }
  return "";
}

/// Returns the value that is called so; none when no value is.
template <class E>
constexpr std::optional<E> value_named(std::string_view name, EnumNames<E> names) {
  for (const auto& [known, meaning] : names) {
    if (name == known) return meaning;
  }
  return std::nullopt;
}

/// Returns all names, in the order of the table.
template <class E>
std::string names_listed(EnumNames<E> names, std::string_view between = "|") {
  std::string all;
  for (const auto& [name, meaning] : names) {
    if (!all.empty()) all += between;
    all += name;
  }
  return all;
}

}  // namespace mh
