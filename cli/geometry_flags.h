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
  int d_key = 0, d_value = 0, key_heads = 0, d_out = 0;  // 0: not given
};

/// --geometry
void add_geometry_flag(CLI::App& verb, std::string& geometry);
/// and --d-model, --heads, --d-key, --d-value, --key-heads, --d-out.
void add_geometry_flags(CLI::App& verb, GeometryFlags& flags);

/// What they describe, but for --d-out. Throws UsageError, FileError, FormatError.
HeadGeometry geometry_of(const GeometryFlags& flags);

}  // namespace mh::cli
