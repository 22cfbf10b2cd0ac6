// What heads_similar() found as JSON: what `multihead heads similar --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/measures/heads_similar.h"

namespace mh {

/// model: what the JSON calls it.
std::string similar_json(const SimilarReport& similar, const std::string& model);

}  // namespace mh
