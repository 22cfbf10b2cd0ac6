// Heads by name, or described in JSON: what geometry takes.
#pragma once

#include <string>

#include "multihead/nn/head_geometry.h"

namespace mh {

/// What `given` names: one of geometry_names(), or an object of the fields of config.json's "head_geometry",
/// in a file *.json or as it is. A size of 0 is "not given" in files, which may be copies of a model's; in
/// what was typed it is an error. Throws UsageError, FileError, FormatError.
HeadGeometry named_geometry(const std::string& given, int heads, int d_model);

/// What may be given, in a sentence with all names.
std::string about_geometries();

}  // namespace mh
