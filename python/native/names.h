// Names of enums, as Python gives them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"

namespace mh::python {

/// The value of a name. Throws UsageError that lists the names; `argument` is what it calls the argument.
template <class Value>
Value value_named(std::string_view name, EnumNames<Value> names, std::string_view argument) {
  std::string all;
  for (const auto& [known, value] : names) {
    if (name == known) return value;
    all += (all.empty() ? "" : "|") + std::string(known);
  }
  throw UsageError(fmt::format("`{}`: expected {}, got {}", argument, all, name.empty() ? "nothing" : name));
}

}  // namespace mh::python
