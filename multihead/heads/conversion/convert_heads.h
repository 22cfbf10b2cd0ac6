// Converts the heads of one layer into heads of another geometry. An exact conversion gives the same
// outputs up to rounding; the others approximate. How a geometry is converted to canonical heads and from
// them is in its own file (nn/geometries/); changes to canonical heads are here.
#pragma once

#include <vector>

#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/layer_weights.h"

namespace mh {

/// Converts any heads to canonical ones, which read the whole row and have their own queries and keys;
/// exact. The columns that a segment does not read become rows of zeros; the product of two matrices
/// becomes one; collaborative heads share one head of keys; a missing W^O becomes the identity. A merged
/// W_i is split into W_i^Q W_i^K^T by its singular values, with the bias as one more row. Throws UsageError
/// naming the head and its rank when d_key is too small for it.
LayerWeights to_canonical(const LayerWeights& layer, const CanonicalOptions& options = {});

/// Replaces queries and keys by one matrix W_i = W_i^Q W_i^K^T for each head; exact: c_i = b_i^Q W_i^K^T,
/// and b_i^K cancels in the softmax.
LayerWeights to_merged(const LayerWeights& layer);

/// Makes groups of neighbouring heads share keys and values, the means of theirs (grouped-query attention,
/// Ainslie et al. 2023). Not exact. Throws UsageError unless key_heads divides the numbers of key and value
/// heads.
LayerWeights to_grouped(const LayerWeights& layer, int key_heads);

/// Makes heads share W^Q and W^K of `shared_size` columns and have a mixing vector each (collaborative
/// heads, Cordonnier et al. 2020). Alternating least squares look for the sum_r m_ir q_r k_r^T that is
/// nearest to every W_i^Q W_i^K^T, beginning with the largest singular vectors of all heads. Exact when
/// shared_size is heads * d_key, the largest possible rank.
LayerWeights to_collaborative(const LayerWeights& layer, int shared_size);

/// Reorders heads: head i of the new layer is head order[i] of the old one; exact. Throws UsageError when
/// `order` is not a permutation, and when heads that share keys and values do not stay together.
LayerWeights permuted(const LayerWeights& layer, const std::vector<int>& order);

/// Removes heads; the outputs are those of the layer with these heads muted, exactly. Heads of keys and values that nobody
/// uses any more go with them. Throws UsageError when no head is left, and when heads that share keys and values would not
/// be as many everywhere.
LayerWeights without_heads(const LayerWeights& layer, const std::vector<int>& removed);

/// Merges heads whose queries, keys and values are equal (up to `tolerance` times the largest number) into
/// one head, whose W_i^O is the sum of theirs; exact. Returns the same layer when no two heads are equal.
LayerWeights equal_merged(const LayerWeights& layer, double tolerance = 1e-6);

}  // namespace mh
