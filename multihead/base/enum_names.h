// The names of an enum's values, or of another type's few, in files and flags. One table for each enum; whoever reads or writes a name
// uses it.
#pragma once

#include <initializer_list>
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

}  // namespace mh
