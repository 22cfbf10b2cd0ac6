// The description of heads in as few fields as possible, so that attentions can share one.
#pragma once

#include "multihead/nn/head_geometry.h"

namespace mh {

/// Returns the same heads with what stands for itself left unset again. REQUIRES: problems_of(geometry, d_model) is empty.
HeadGeometry shortest(HeadGeometry geometry, int d_model);

}  // namespace mh
