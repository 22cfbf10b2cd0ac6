// Makes one vector of the states of a sentence's tokens, as a Pooling says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/base/ragged.h"

namespace mh {

enum class Pooling;  // sentence_model.h

/// For each sequence of states [N, d] the results of all modes side by side: [S, modes * d]. The first `left_out` rows of each
/// do not count: those of a prompt. A sequence without tokens has zeros. Throws ShapeError when the states are not those of the
/// sequences.
Var pool_states(Tape& tape, Var states, const Ragged& sequences, std::span<const Pooling> modes,
                int32_t left_out = 0);

/// What the rows of a sequence are multiplied by in their sum; zeros for kMax, which is no sum.
std::vector<double> pooling_weights(Pooling mode, int32_t rows, int32_t left_out = 0);

}  // namespace mh
