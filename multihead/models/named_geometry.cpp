#include "multihead/models/named_geometry.h"

#include <fmt/format.h>

#include <climits>
#include <type_traits>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

/// Calls visit(name, size) with every size that 0 leaves to its usual value.
template <class Visit>
void for_sizes(HeadGeometry& geometry, const Visit& visit) {
  HeadGeometry::describe(geometry, [&](const HeadField& field, auto& value, auto...) {
    if constexpr (std::is_same_v<decltype(value), int&>) visit(field.name, value);
  });
}

/// JSON that somebody typed: what is left out has its usual value, but a size of 0 is a mistake.
HeadGeometry typed_geometry(const std::string& given, int heads) {
  constexpr int kLeftOut = INT_MIN;
  HeadGeometry geometry{.heads = heads};
  for_sizes(geometry, [](const char*, int& size) { size = kLeftOut; });
  try {
    from_json(geometry, given, "--geometry");
  } catch (const FormatError& error) {
    throw UsageError(error.what());
  }
  for_sizes(geometry, [](const char* name, int& size) {
    if (size == 0)
      throw UsageError(
          fmt::format("--geometry: {0} is 0; set it to 1 or more, or leave {0} out for the usual one", name));
    if (size == kLeftOut) size = 0;
  });
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
