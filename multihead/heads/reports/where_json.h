// What heads_where() finds as JSON: what `multihead heads where --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/measures/heads_where.h"

namespace mh {

/// model: what the JSON calls it.
std::string where_json(const WhereReport& report, const std::string& model);

}  // namespace mh
