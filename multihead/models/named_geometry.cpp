#include "multihead/models/named_geometry.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"
#include "multihead/models/head_changes.h"

namespace mh {
namespace {

HeadGeometry typed_geometry(const std::string& given, int heads) {
  HeadGeometry geometry{.heads = heads};
  try {
    HeadChanges::of_json(given, "`geometry`").apply(geometry);
  } catch (const FormatError& error) {
    throw UsageError(error.what());
  }
  return geometry;
}

}  // namespace

HeadGeometry named_geometry(const std::string& given, int heads, int d_model) {
  if (given.starts_with('{')) return typed_geometry(given, heads);
  if (!given.ends_with(".json")) return geometry_preset(given, heads, d_model);
  HeadGeometry geometry{.heads = heads};
  from_json(geometry, read_regular_file(given), given);
  return geometry;
}

std::string about_geometries() {
  std::string names;
  for (const GeometryName& geometry : geometry_names())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", geometry.name);
  return fmt::format(
      "How the heads are built: a file *.json, JSON such as '{{\"scores\":\"merged\"}}', or a name: {}",
      names);
}

}  // namespace mh
