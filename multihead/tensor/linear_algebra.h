// Singular values, eigenvalues, orthogonal factors and least squares of small matrices, in double.
// Conversions of heads and studies use them, e.g. to find how many dimensions a matrix really uses;
// training does not.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

using DoubleMatrix = BasicTensor<double>;
using ConstDoubleView = BasicMatrixView<const double>;

DoubleMatrix in_double(ConstMatrixView a);
Tensor in_float(ConstDoubleView a);

/// a b: [M, K] x [K, N] -> [M, N].
DoubleMatrix product(ConstDoubleView a, ConstDoubleView b);
DoubleMatrix transposed(ConstDoubleView a);

/// a = left diag(values) right^T, r = min(rows, cols).
struct Svd {
  DoubleMatrix left;           // [rows, r], orthonormal columns
  std::vector<double> values;  // r of them, falling, none negative
  DoubleMatrix right;          // [cols, r], orthonormal columns

  /// Returns left diag(values) right^T with only the `rank` largest values: the nearest matrix of that rank
  /// (Eckart and Young 1936). REQUIRES: 0 <= rank <= r.
  DoubleMatrix of_rank(int64_t rank) const;
};
/// Throws Error when a number is not finite; so do the functions below.
Svd svd(ConstDoubleView a);

/// The singular values alone, without their vectors.
std::vector<double> singular_values(ConstDoubleView a);

/// Returns how many singular values (given in falling order) are above `tolerance` times the largest.
/// Products of float32 matrices carry rounding of about 1e-7 of it.
int64_t numeric_rank(std::span<const double> values, double tolerance = 1e-6);

/// a = vectors diag(values) vectors^T.
struct SymmetricEigen {
  std::vector<double> values;  // falling
  DoubleMatrix vectors;        // [n, n], column i belongs to values[i]
};
/// Reads the lower triangle only. REQUIRES: as many rows as columns.
SymmetricEigen symmetric_eigen(ConstDoubleView a);

/// The eigenvalues of any square matrix, each as often as it occurs, in no order. REQUIRES: as many rows as columns.
std::vector<std::complex<double>> eigenvalues(ConstDoubleView a);

/// a = q r, r = min(rows, cols).
struct Qr {
  DoubleMatrix q;  // [rows, r], orthonormal columns
  DoubleMatrix r;  // [r, cols], upper triangular, its diagonal not negative
};
Qr qr(ConstDoubleView a);
/// The r of it alone, with any signs: columns of a have the lengths of those of r, and the same angles between them.
DoubleMatrix triangular_factor(ConstDoubleView a);

/// Returns the x [K, N] for which a x is nearest to b, of several the shortest: a [M, K], b [M, N].
/// Singular values below `tolerance` times the largest count as 0.
DoubleMatrix least_squares(ConstDoubleView a, ConstDoubleView b, double tolerance = 1e-12);

}  // namespace mh
