// "precision NAME": what the programs that run beside a peer do with that command.
#pragma once

#include <sstream>
#include <string>

#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"
#include "multihead/model.h"

namespace mh {

/// Sets the precision of a model's products (docs/precision.md); returns 0.
inline double use_precision_named(Model& model, std::istringstream& rest) {
  std::string name;
  rest >> name;
  const auto precision = value_named(name, kPrecisionNames);
  if (!precision) throw UsageError("precision: " + names_listed(kPrecisionNames) + ", please");
  use_precision(model, *precision);
  return 0;
}

}  // namespace mh
