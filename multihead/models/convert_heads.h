// One geometry of heads turned into another, for one layer. Exact ones give the same outputs but for
// rounding; the others come as near as their method does. How a geometry becomes canonical, and is made of
// others, its own file knows (nn/geometries/); what is done to canonical heads stands here.
#pragma once

#include <vector>

#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/layer_weights.h"

namespace mh {

/// Heads that read the whole row, with queries and keys of their own, from any others; exact. Segments become
/// rows of zeros, products of two matrices one; collaborative heads share one head of keys; heads without W^O
/// get the identity. Merged W_i become W_i^Q W_i^K^T by their singular values, biases as one more row.
/// Throws UsageError naming the head and its rank when d_key is too small for it.
LayerWeights to_canonical(const LayerWeights& layer, const CanonicalOptions& options = {});

/// One matrix W_i = W_i^Q W_i^K^T a head; exact: c_i = b_i^Q W_i^K^T, and b_i^K cancels in the softmax.
LayerWeights to_merged(const LayerWeights& layer);

/// Groups of neighbouring heads share keys and values: the mean of theirs (Ainslie et al. 2023). Not exact.
/// Throws UsageError unless key_heads divides the heads of keys and values that there are.
LayerWeights to_grouped(const LayerWeights& layer, int key_heads);

/// Shared W^Q and W^K of `shared_size` columns and a mixing vector a head (Cordonnier et al. 2020): the
/// nearest sum_r m_ir q_r k_r^T to every W_i^Q W_i^K^T that alternating least squares find, from the largest
/// singular vectors of all heads on. Exact when shared_size is all the rank there is, heads * d_key.
LayerWeights to_collaborative(const LayerWeights& layer, int shared_size);

/// Head i of the new layer is head order[i] of the old; exact. Throws UsageError on what is no permutation.
LayerWeights permuted(const LayerWeights& layer, const std::vector<int>& order);

/// Without these heads, as if they were muted; exact. Throws UsageError when none is left.
LayerWeights without_heads(const LayerWeights& layer, const std::vector<int>& removed);

/// Of heads whose queries, keys and values are equal (by `tolerance` times the largest number), one, with the
/// sum of their W_i^O; exact. The same layer when no two are equal.
LayerWeights equal_merged(const LayerWeights& layer, double tolerance = 1e-6);

}  // namespace mh
