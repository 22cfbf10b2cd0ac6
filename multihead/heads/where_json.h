// What head_evidence() finds as JSON: what `multihead heads where --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/where_heads.h"

namespace mh {

/// model: what the JSON calls it.
std::string where_json(const HeadEvidenceReport& report, const std::string& model);

}  // namespace mh
