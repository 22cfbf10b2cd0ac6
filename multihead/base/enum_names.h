// The names that an enum's values have in files and flags: one table, from which all of them read and write.
#pragma once

#include <initializer_list>
#include <type_traits>
#include <utility>

namespace mh {

template <class E>
using EnumNames = std::initializer_list<std::pair<const char*, E>>;

/// The first name of a value; empty when it has none.
template <class E>
constexpr const char* name_of(E value, EnumNames<std::type_identity_t<E>> names) {
  for (const auto& [name, meaning] : names) {
    if (meaning == value) return name;
  }
  return "";
}

}  // namespace mh
