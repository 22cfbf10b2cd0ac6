// Attributions and their faithfulness as JSON: what `multihead heads attribution --json` prints (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/attribution/heads_attribution.h"

namespace mh {

/// model: what the JSON calls it.
std::string attribution_json(const AttributionReport& found, const std::string& model,
                             const std::string& text);
std::string faithfulness_json(const Faithfulness& found, const std::string& model);

}  // namespace mh
