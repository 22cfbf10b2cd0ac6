// What `multihead heads contributions` prints.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/heads/contributions/heads_contributions.h"

namespace mh::cli {

/// What is explained, its sum, layers by heads, and the strongest parts; 80 columns.
std::string contributions_tables(const ContributionReport& found, int64_t strongest);
std::string contributions_tables(const MeanContributions& found, int64_t strongest);

}  // namespace mh::cli
