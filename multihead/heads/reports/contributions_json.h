// The JSON of `multihead heads contributions` (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/contributions/heads_contributions.h"

namespace mh {

std::string contributions_json(const ContributionReport& found, const std::string& model);
std::string contributions_json(const MeanContributions& found, const std::string& model);

}  // namespace mh
