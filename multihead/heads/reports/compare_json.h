// What heads_compare() found as JSON: what `multihead heads compare --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/measures/heads_compare.h"

namespace mh {

/// model: what the JSON calls the model before.
std::string compare_json(const CompareReport& report, const std::string& model);

}  // namespace mh
