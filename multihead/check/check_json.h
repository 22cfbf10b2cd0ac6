// What check_model() finds as JSON: what `multihead check --json FILE` writes (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/check/check_model.h"

namespace mh {

/// model: what the JSON calls it.
std::string check_json(const CheckReport& report, const std::string& model);

}  // namespace mh
