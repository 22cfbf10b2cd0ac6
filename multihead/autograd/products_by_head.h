// Products of rows with rows, head by head: what queries or keys meet besides each other.
#pragma once

#include "multihead/autograd/tape.h"

namespace mh {

/// scale * x_h y_h^T for each head h, side by side: x [N, heads * d], y [M, heads * d] -> [N, heads * M]. REQUIRES: heads
/// divides the columns, of which x and y have equally many.
Var products_by_head(Tape& tape, Var x, Var y, int heads, float scale);

}  // namespace mh
