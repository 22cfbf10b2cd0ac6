// What conversions of heads are made of: matrices of canonical heads taken from a layer and put into another.
#pragma once

#include <vector>

#include "multihead/nn/layer_weights.h"

namespace mh {

/// What becomes of the heads, from little to much.
enum class Change {
  kSelection,    // some of them, in some order
  kProjections,  // the same queries and keys (or others of that size) from other matrices
  kProducts,     // matrices that stand for products of queries' and keys'
};

struct CanonicalOptions {
  int d_key = 0;         // of what was merged; 0: the geometry's
  bool nearest = false;  // where W_i has a higher rank than d_key: the nearest of that rank (not exact)
};

Tensor side_by_side(const std::vector<DoubleMatrix>& parts);

/// The matrices of `count` heads, one for each group of query heads.
std::vector<HeadMatrix> heads_of(const LayerWeights& layer, HeadPart part, int count);
/// Puts these heads side by side, and their biases where the geometry has any.
void put_projection(LayerWeights& to, HeadPart part, const std::vector<HeadMatrix>& heads);

/// What a layer that reads whole rows keeps of another: sizes, scale, biases, values, positions, norms and
/// output; W^O is the identity where there was none.
LayerWeights begun(const LayerWeights& from, Scores scores);

/// The bias as one more row of the weight, [d + 1, size], and apart again.
DoubleMatrix with_bias(const HeadMatrix& head);
HeadMatrix bias_apart(const DoubleMatrix& both);

}  // namespace mh
