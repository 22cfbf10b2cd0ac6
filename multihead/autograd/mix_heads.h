// Heads that differ by a mixing vector only: y_i = x * m_i, number by number, side by side.
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"

namespace mh {

/// x [N, D], mixing [heads, D] -> [N, heads * D].
Var mix_heads(Tape& tape, Var x, const Parameter& mixing);

}  // namespace mh
