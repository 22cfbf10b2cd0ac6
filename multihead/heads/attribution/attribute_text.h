// Attribution of a text that is explained already (heads_attribution.h).
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/heads/attribution/explained_text.h"

namespace mh {

/// The methods that are asked for, in the order of their names. Throws UsageError on flow through too many tokens.
std::vector<AttributionMethod> methods_to_run(const AttributionOptions& options, int64_t tokens);
AttributionReport attribute_text(const ExplainedText& text, const AttributionOptions& options);

}  // namespace mh
