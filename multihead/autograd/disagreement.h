// How similar the heads of a layer are, as a loss that training can make smaller: the regularisers of Li et
// al. 2018 ("Multi-head attention with disagreement regularization", section 3).
#pragma once

#include <span>

#include "multihead/autograd/tape.h"

namespace mh {

/// The sum over rows of (1 / h^2) sum_ij cos(x_i, x_j), where x_i are the numbers of head i in the row: [1,
/// 1]. The cosine with a head of zeros counts as 0. x [N, heads * D].
Var row_similarity(Tape& tape, Var x, int heads);
/// The same of heads that do not lie side by side, [N, D] each. REQUIRES: there is one.
Var row_similarity(Tape& tape, std::span<const Var> heads);

/// The sum over queries of (1 / h^2) sum_ij |A_i * A_j|, elementwise, over all keys: [1, 1]. maps: A_i of each head,
/// all [Nq, keys]. REQUIRES: there is one.
Var map_similarity(Tape& tape, std::span<const Var> maps);

}  // namespace mh
