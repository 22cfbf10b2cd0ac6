// What heads_importance() and pruning_curve() find as JSON: what `multihead heads importance --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/importance/pruning_curve.h"

namespace mh {

/// model: what the JSON calls it.
std::string importance_json(const ImportanceReport& report, const std::string& model);
std::string importance_json(const PruningCurve& curve, const std::string& model);

}  // namespace mh
