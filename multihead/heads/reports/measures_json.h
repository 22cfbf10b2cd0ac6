// The figures of the verbs of `multihead heads` as JSON: what they print with --json (docs/file-formats.md). model: what the JSON
// calls the model.
#pragma once

#include <string>

#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/measures/heads_relations.h"
#include "multihead/heads/measures/heads_stats.h"

namespace mh {

std::string stats_json(const StatsReport& report, const std::string& model);
std::string relations_json(const RelationsReport& report, const std::string& model);
std::string alignment_json(const AlignmentReport& report, const std::string& model);

}  // namespace mh
