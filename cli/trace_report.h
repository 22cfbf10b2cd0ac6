// What `multihead trace` prints: every tensor in 80 columns.
#pragma once

#include <string>
#include <vector>

#include "multihead/heads/reports/trace/trace.h"

namespace mh::cli {

/// labels: of the rows that ask and that are read; none: they have no names.
struct TraceLabels {
  std::vector<std::string> queries, keys;
};
std::string trace_text(const AttentionTrace& trace, const TraceLabels& labels);

}  // namespace mh::cli
