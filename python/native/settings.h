// The settings among the keyword arguments of a function of Python, which come as JSON.
#pragma once

#include <string>

#include "multihead/base/error.h"
#include "multihead/io/config.h"

namespace mh::python {

/// Those that are given, in place of the defaults. Throws UsageError.
template <class Settings>
Settings settings_of(const std::string& arguments, const char* function) {
  Settings settings;
  try {
    from_json(settings, arguments, function);
  } catch (const FormatError& error) {
    throw UsageError(error.what());
  }
  return settings;
}

}  // namespace mh::python
