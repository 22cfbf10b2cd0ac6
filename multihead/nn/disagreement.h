// Regularisers that make heads differ (Li et al. 2018): loss = NLL + (lambda / h^2) sum_ij of how similar heads
// i and j are. For every row and attention; summed over rows and divided by the target's tokens as the NLL
// is, and the mean of all attentions.
#pragma once

#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

enum class Disagreement {
  kNone,
  kSubspace,   // cos(V_i, V_j): the values of a row
  kPositions,  // |A_i * A_j|: the weights of a query; by the composed path, as the fused kernel keeps none
  kOutput,     // cos(Att_i, Att_j): the outputs before W^O
};

inline constexpr EnumNames<Disagreement> kDisagreementNames = {{"none", Disagreement::kNone},
                                                               {"subspace", Disagreement::kSubspace},
                                                               {"positions", Disagreement::kPositions},
                                                               {"output", Disagreement::kOutput}};

/// What attentions leave behind in a Context that asks: the sum over rows of (1 / h^2) sum_ij, one Var [1, 1]
/// each.
struct HeadSimilaritySums {
  Disagreement form = Disagreement::kSubspace;
  std::vector<Var> sums = {};
};

}  // namespace mh
