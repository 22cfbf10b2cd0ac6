// Algebraic checks of 001 that have a file of their own.
#pragma once

#include "lab/studies/study.h"

namespace mh::diversity {

/// 001.6: whether the embedding is cut into parts for the heads.
Claim not_segmented(const AlgebraCase& a);
/// 001.7: which matrix holds the heads' weights, and how the heads are merged.
Claim merging(const AlgebraCase& a);

}  // namespace mh::diversity
