// The building blocks of conversions between geometries: take the matrices of canonical heads (the paper's)
// out of a layer, and put them into another layer.
#pragma once

#include <array>
#include <vector>

#include "multihead/nn/layer_weights.h"

namespace mh {

/// Of disentangled positions with projections of their own (nn/positions.h): heads side by side, as queries and keys.
inline constexpr std::array<const char*, 4> kDistanceProjections = {"distance_w_k", "distance_b_k",
                                                                    "distance_w_q", "distance_b_q"};

/// What a conversion does to the heads, from small to large changes.
enum class Change {
  kOrder,        // keeps all of them, in another order
  kSelection,    // keeps some of them, in some order
  kProjections,  // computes the same queries and keys, or others of that size, from other matrices
  kProducts,     // replaces W_i^Q and W_i^K by other matrices with the same product
};

struct CanonicalOptions {
  int d_key = 0;         // size of the heads that merged ones become; 0: the geometry's d_key
  bool nearest = false;  // when a W_i has a higher rank than d_key, take the nearest of that rank (not exact)
};

/// Returns [p_0 | p_1 | ...]: parts with equal rows, one after the other by columns.
Tensor concatenated_columns(const std::vector<DoubleMatrix>& parts);

/// Returns the matrices of `count` heads, one for each group of query heads.
std::vector<HeadMatrix> heads_of(const LayerWeights& layer, HeadPart part, int count);
/// Puts these heads side by side, and their biases where the geometry has any.
void put_projection(LayerWeights& to, HeadPart part, const std::vector<HeadMatrix>& heads);

/// Returns the beginning of a layer that reads whole rows, with what it keeps of `from`: sizes, scale, biases,
/// values, positions, norms and output. W^O becomes the identity if there was none. Queries and keys are
/// still missing.
LayerWeights with_outputs_of(const LayerWeights& from, Scores scores);

/// Appends the bias to the weight as one more row, [d + 1, size]; bias_apart() splits them again.
DoubleMatrix with_bias(const HeadMatrix& head);
HeadMatrix bias_apart(const DoubleMatrix& both);

}  // namespace mh
