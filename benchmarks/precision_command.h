// "precision NAME" and "cache NAME": what the programs that run beside a peer do with these commands.
#pragma once

#include <sstream>
#include <string>

#include "multihead/base/error.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/model.h"

namespace mh {

/// Sets the precision of a model's products (docs/precision.md); returns 0.
inline double use_precision_named(Model& model, std::istringstream& rest) {
  std::string name;
  rest >> name;
  const auto precision = precision_named(name);
  if (!precision) throw UsageError("precision: " + precisions_like(name) + ", please");
  use_precision(model, *precision);
  return 0;
}

/// The type of cache that the command names (docs/precision.md#the-cache).
inline CacheType cache_type_named(std::istringstream& rest) {
  std::string name;
  rest >> name;
  const auto type = value_named(name, kCacheTypeNames);
  if (!type) throw UsageError("cache: " + names_listed(kCacheTypeNames) + ", please");
  return *type;
}

}  // namespace mh
