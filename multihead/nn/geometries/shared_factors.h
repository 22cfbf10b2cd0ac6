// Approximates the matrices W_i of all heads by one pair of matrices and a mixing vector for each head; for
// collaborative heads.
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

/// Finds the factors of W_i = lefts_i rights_i^T by `rounds` of alternating least squares: each of the
/// three in turn is set to the best for the two others. It begins with the `size` largest singular vectors
/// of all heads, each mixed into its own head only; that is exact when there are no more of them.
SharedFactors shared_factors(std::vector<DoubleMatrix> lefts, std::vector<DoubleMatrix> rights, int64_t size,
                             int rounds);

}  // namespace mh
