// The figures of head_stats() as JSON: what `multihead heads stats --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/head_stats.h"

namespace mh {

/// model: what the JSON calls it.
std::string stats_json(const HeadStatsReport& report, const std::string& model);

}  // namespace mh
