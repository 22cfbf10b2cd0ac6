// Names of enums, as Python gives them.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"

namespace mh::python {

/// The value of a name. Throws UsageError that lists the names; `argument` is what it calls the argument.
template <class Value>
Value value_named(std::string_view name, EnumNames<Value> names, std::string_view argument) {
  if (const auto value = mh::value_named(name, names)) return *value;
  throw UsageError(fmt::format("`{}`: expected {}, got {}", argument, names_listed(names),
                               name.empty() ? "nothing" : name));
}

}  // namespace mh::python
