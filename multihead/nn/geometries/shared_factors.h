// One pair of matrices and a mixing vector a head in the place of each head's own product.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/tensor/linear_algebra.h"

namespace mh {

/// W_i ~ sum_r mixing(i, r) left_r right_r^T.
struct SharedFactors {
  DoubleMatrix left;    // [rows, size]
  DoubleMatrix right;   // [columns, size]
  DoubleMatrix mixing;  // [heads, size]
};

/// By `rounds` of alternating least squares, for W_i = lefts_i rights_i^T: each of the three in turn is the
/// best for the two others. Begins with the `size` largest singular vectors of all heads, each mixed into its
/// own head only, which is exact when there are no more of them.
SharedFactors shared_factors(std::vector<DoubleMatrix> lefts, std::vector<DoubleMatrix> rights, int64_t size,
                             int rounds);

}  // namespace mh
