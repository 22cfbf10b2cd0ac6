// What similar_heads() found as JSON: what `multihead heads similar --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/head_similarity.h"

namespace mh {

/// model: what the JSON calls it.
std::string similar_json(const SimilarHeads& similar, const std::string& model);

}  // namespace mh
