// Rotary positions (kernels/rotary.h) as an op of the tape.
#pragma once

#include "multihead/autograd/tape.h"
#include "multihead/kernels/rotary.h"

namespace mh {

/// Returns x with each pair of numbers turned, [N, H * D]; the gradient is turned back. The spans of
/// `rotary` must outlive the backward pass.
Var rotate(Tape& tape, Var x, const Rotary& rotary);

}  // namespace mh
