// Value zeroing (Mohebbi et al. 2023): how much each row of a layer's output turns when one token gives no value there.
#pragma once

#include <cstdint>

#include "multihead/heads/attribution/layer_mixes.h"

namespace mh {

/// C of each layer, rows divided by their sums; of a decoder's layer, self and cross side by side sum to 1. A row that no value
/// turns is its own.
LayerMixes zeroed_values(const ExplainedText& text, int64_t batch_tokens);

}  // namespace mh
