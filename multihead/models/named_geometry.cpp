#include "multihead/models/named_geometry.h"

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"

namespace mh {

HeadGeometry named_geometry(const std::string& given, int heads, int d_model) {
  HeadGeometry geometry{.heads = heads};
  if (given.starts_with('{')) {
    try {
      from_json(geometry, given, "--geometry");
    } catch (const FormatError& error) {
      throw UsageError(error.what());
    }
    return geometry;
  }
  if (!given.ends_with(".json")) return geometry_preset(given, heads, d_model);
  from_json(geometry, read_file(given), given);
  return geometry;
}

}  // namespace mh
