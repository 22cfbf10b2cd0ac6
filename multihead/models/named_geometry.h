// Reads a description of heads that is given by name or as JSON: the value of the setting `geometry`.
#pragma once

#include <string>

#include "multihead/nn/head_geometry.h"

namespace mh {

/// Returns the geometry that `given` describes: one of geometry_names(), a JSON object with the fields of
/// "head_geometry" in config.json, or a file *.json with such an object. A size of 0 means the default in a
/// file, since it may be a copy from a model; in JSON that was typed it is an error. Throws UsageError,
/// FileError, FormatError.
HeadGeometry named_geometry(const std::string& given, int heads, int d_model);

/// Returns a sentence about what may be given, with all names.
std::string about_geometries();

}  // namespace mh
