#include "multihead/models/named_geometry.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"
#include "multihead/models/head_changes.h"

namespace mh {
namespace {

/// JSON that somebody typed: what is left out has its usual value.
struct TypedHeads {
  HeadChanges given;
  template <class V>
  void visit(V& v) {
    given.visit_as_file(v);
  }
};

HeadGeometry typed_geometry(const std::string& given, int heads) {
  TypedHeads typed;
  try {
    from_json(typed, given, "`geometry`");
  } catch (const FormatError& error) {
    throw UsageError(error.what());
  }
  HeadGeometry geometry{.heads = heads};
  typed.given.apply(geometry);
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
