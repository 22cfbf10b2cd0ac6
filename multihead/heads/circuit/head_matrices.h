// HeadMatrices: the matrices of each head of a graph's attentions, packed for products with a few rows.
#pragma once

#include <vector>

#include "multihead/heads/circuit/stream_graph.h"
#include "multihead/kernels/packed_matrix.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// x [N, d_model] -> x W + b [N, size], and back: dy [N, size] -> dy W^T.
struct HeadProjection {
  PackedMatrix weight, transposed;
  Tensor bias;  // [1, size]
};

class HeadMatrices {
 public:
  /// Copies the numbers as float32.
  explicit HeadMatrices(const StreamGraph& graph);

  /// Of a target that is the input of a head's queries, keys or values.
  const HeadProjection& projection(int target) const { return projections_[static_cast<size_t>(target)]; }
  /// What a head adds to its stream, [N, d_model]: its columns of z [N, heads * d_value] times its rows of W^O; without W^O these
  /// columns in their places.
  Tensor written(int source, ConstMatrixView z) const;

 private:
  const StreamGraph& graph_;
  std::vector<HeadProjection> projections_;  // by target; empty of others
  std::vector<PackedMatrix> outputs_;        // by source, [d_value, d_model]; empty of others
};

}  // namespace mh
