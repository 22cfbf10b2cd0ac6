// What `multihead heads attribution` prints, for 80 columns.
#pragma once

#include <string>

#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/attribution/heads_attribution.h"

namespace mh::cli {

/// A line a token, a column a method.
std::string attribution_table(const AttributionReport& found);
/// A line a method.
std::string faithfulness_table(const Faithfulness& found);
/// "relevance" in at most so many columns: how tables call a method.
const char* short_name(AttributionMethod method);

}  // namespace mh::cli
