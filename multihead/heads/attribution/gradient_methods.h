// Attribution by gradients with respect to what the first layer reads (heads_attribution.h).
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/heads/attribution/explained_text.h"

namespace mh {

/// sum_c dF/dx(c) x(c) of each token.
std::vector<double> gradient_times_input(const ExplainedText& text);
/// Integrated gradients from the text whose tokens are all replaced, by the midpoint rule. Throws UsageError on steps below 1.
std::vector<double> integrated_gradients(const ExplainedText& text, int steps, int64_t batch_tokens);

}  // namespace mh
