// Makes one vector of the states of a sentence's tokens, as a Pooling says.
#pragma once

#include <span>

#include "multihead/autograd/tape.h"
#include "multihead/base/ragged.h"

namespace mh {

enum class Pooling;  // sentence_model.h

/// For each sequence of states [N, d] the results of all modes side by side: [S, modes * d]. A sequence without
/// tokens has zeros. Throws ShapeError when the states are not those of the sequences.
Var pool_states(Tape& tape, Var states, const Ragged& sequences, std::span<const Pooling> modes);

}  // namespace mh
