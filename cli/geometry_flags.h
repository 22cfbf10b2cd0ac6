// The flags that describe the heads of a layer.
#pragma once

#include <string>

#include "multihead/nn/head_geometry.h"

namespace CLI {
class App;
}

namespace mh::cli {

struct GeometryFlags {
  std::string geometry = "canonical";  // a name, a .json file, or JSON itself
  int d_model = 512, heads = 8;
  int d_key = 0, d_value = 0, key_heads = 0;  // 0: as the geometry says
};

/// --geometry
void add_geometry_flag(CLI::App& verb, std::string& geometry);
/// and --d-model, --heads, --d-key, --d-value, --key-heads.
void add_geometry_flags(CLI::App& verb, GeometryFlags& flags);

/// What `given` names: one of geometry_names(), or an object of the fields of config.json's "head_geometry",
/// in a file *.json or as it is. Throws UsageError, FileError, FormatError.
HeadGeometry geometry_of(const std::string& given, int heads, int d_model);
HeadGeometry geometry_of(const GeometryFlags& flags);

}  // namespace mh::cli
