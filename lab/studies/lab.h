// What the algebraic claims compare: heads computed from their formula with small matrices in double, and a
// layer of the library with the same numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh::lab {

using Matrix = DoubleMatrix;

/// Normal numbers of this deviation.
Matrix random_matrix(int64_t rows, int64_t cols, Random& random, double deviation = 1);
/// [n, n] with orthonormal rows.
Matrix random_rotation(int64_t n, Random& random);
inline Matrix product(const Matrix& a, const Matrix& b) {
  return mh::product(a.view(), b.view());
}
/// a b^T
Matrix product_transposed(const Matrix& a, const Matrix& b);
inline Matrix transposed(const Matrix& a) {
  return mh::transposed(a.view());
}
/// a + factor b
Matrix sum(const Matrix& a, const Matrix& b, double factor = 1);
Matrix scaled(Matrix a, double factor);
Matrix columns(const Matrix& a, int64_t begin, int64_t end);
Matrix beside(const std::vector<Matrix>& parts);
double largest(const Matrix& a);
double largest_difference(const Matrix& a, const Matrix& b);
/// The largest difference, divided by the largest number of what was expected.
double relative_difference(const Matrix& found, const Matrix& expected);
/// sqrt of the sum of squares.
double norm(const Matrix& a);
/// Of the matrices as vectors; 0 when one of them is 0.
double cosine(const Matrix& a, const Matrix& b);
Matrix softmax_rows(Matrix scores);
/// Of an even number of them the mean of the middle two. REQUIRES: at least one.
double median(std::vector<double> numbers);

/// Head i of a canonical layer: W_i^Q and W_i^K [d, d_k], W_i^V [d, d_v], and its block W_i^O [d_v, d].
struct Head {
  Matrix q, k, v, o;
};
struct HeadSizes {
  int heads = 3, d_model = 7, d_key = 5, d_value = 2;  // unequal on purpose
};
/// Deviation 1 / sqrt(rows).
std::vector<Head> random_heads(const HeadSizes& sizes, Random& random);
Matrix scores(const Matrix& x, const Head& head);                 // x W^Q (x W^K)^T, not scaled
Matrix weights(const Matrix& x, const Head& head, double scale);  // A_i
/// sum_i A_i V_i W_i^O
Matrix multi_head(const Matrix& x, const std::vector<Head>& heads, double scale);

inline Tensor in_float(const Matrix& a) {
  return mh::in_float(a.view());
}
using mh::in_double;

/// A layer of any geometry, run by the library's own kernels on one sentence.
class Layer {
 public:
  Layer(const HeadGeometry& geometry, int d_model, uint64_t seed);

  const HeadGeometry& geometry() const { return attention_.geometry(); }
  /// Concat(head_1, ...) [T, heads * d_value].
  Matrix heads(const Matrix& x);
  /// With W^O, when there is one.
  Matrix output(const Matrix& x);
  /// Of output(x): the clock's seconds, the median of 15 runs.
  double forward_seconds(const Matrix& x);
  /// d(sum of seed * heads(x)) / dx [T, d_model], by autograd; parameters get their gradients, too.
  Matrix input_gradient(const Matrix& x, const Matrix& seed);
  /// The same for output(x).
  void output_gradients(const Matrix& x, const Matrix& seed);

  MultiHeadAttention& attention() { return attention_; }
  std::vector<NamedParameter> parameters();
  int64_t parameter_count();
  Matrix parameter(const std::string& name) { return in_double(find(name).value.view()); }
  void set(const std::string& name, const Matrix& value);
  /// Of the last backward pass.
  Matrix gradient(const std::string& name) { return in_double(find(name).gradient_sum()); }
  void clear_gradients();

 private:
  Parameter& find(const std::string& name);

  DropoutStreams streams_;
  MultiHeadAttention attention_;
};

/// Layers on top of each other, each with its residual, x + layer(x): d(sum of row `row` of the last) / dx.
Matrix stack_gradient(const std::vector<std::unique_ptr<Layer>>& layers, const Matrix& x, int64_t row,
                      const Mask& mask);

}  // namespace mh::lab
