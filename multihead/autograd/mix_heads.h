// Heads that share one projection and differ by a mixing vector: y_i = x * m_i elementwise, the y_i side by
// side (Cordonnier et al. 2020).
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"

namespace mh {

/// x [N, D], mixing [heads, D] -> [N, heads * D].
Var mix_heads(Tape& tape, Var x, const Parameter& mixing);

}  // namespace mh
