#include "multihead/models/named_geometry.h"

#include <fmt/format.h>

#include <climits>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

/// JSON that somebody typed: what is left out has its usual value, but a size of 0 is a mistake.
HeadGeometry typed_geometry(const std::string& given, int heads) {
  constexpr std::pair<const char*, int HeadGeometry::*> kSizes[] = {
      {"d_key", &HeadGeometry::d_key},
      {"d_value", &HeadGeometry::d_value},
      {"key_heads", &HeadGeometry::key_heads},
      {"value_heads", &HeadGeometry::value_heads},
      {"shared_size", &HeadGeometry::shared_size}};
  constexpr int kLeftOut = INT_MIN;
  HeadGeometry geometry{.heads = heads};
  for (const auto& [name, size] : kSizes) geometry.*size = kLeftOut;
  try {
    from_json(geometry, given, "`geometry`");
  } catch (const FormatError& error) {
    throw UsageError(error.what());
  }
  for (const auto& [name, size] : kSizes) {
    if (geometry.*size == 0)
      throw UsageError(
          fmt::format("`geometry`: {0} is 0; set it to 1 or more, or leave {0} out for the usual one", name));
    if (geometry.*size == kLeftOut) geometry.*size = 0;
  }
  return geometry;
}

}  // namespace

HeadGeometry named_geometry(const std::string& given, int heads, int d_model) {
  if (given.starts_with('{')) return typed_geometry(given, heads);
  if (!given.ends_with(".json")) return geometry_preset(given, heads, d_model);
  HeadGeometry geometry{.heads = heads};
  from_json(geometry, read_file(given), given);
  return geometry;
}

}  // namespace mh
