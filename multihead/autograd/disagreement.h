// How similar heads are, as a number that training can make smaller: sum over pairs of heads, for the
// regularisers of Li et al. 2018 ("Multi-head attention with disagreement regularization", section 3).
#pragma once

#include "multihead/autograd/tape.h"
#include "multihead/kernels/attention.h"

namespace mh {

/// The sum over rows of (1 / h^2) sum_ij cos(x_i, x_j), x_i head i's numbers of the row: [1, 1].
/// A head of zeros is like no other. x [N, heads * D].
Var row_similarity(Tape& tape, Var x, int heads);

/// The sum over queries of (1 / h^2) sum_ij |A_i * A_j|, number by number, over all keys: [1, 1]. `maps` as
/// in attention_maps.h.
Var map_similarity(Tape& tape, Var maps, const AttentionInputs& inputs);

}  // namespace mh
