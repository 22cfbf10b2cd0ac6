// Algebraic checks of 003 that have a file of their own.
#pragma once

#include "lab/studies/lab.h"
#include "lab/studies/study.h"

namespace mh::unique_heads {

/// Numbers of head `to` become those of head `from` (a copy); of W_i^O too when asked.
void copy_head(lab::Layer& layer, int from, int to, bool output);

/// 003.2: which heads get equal gradients.
Claim equal_gradients(const AlgebraCase& a);
/// 003.7: how many layers it takes to relate two positions.
Claim path_length(const AlgebraCase& a);

}  // namespace mh::unique_heads
