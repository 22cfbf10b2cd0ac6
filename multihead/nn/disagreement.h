// Regularisers that make the heads of a layer differ (Li et al. 2018): loss = NLL + (lambda / h^2) sum_ij
// similarity of heads i and j. The similarity is summed over rows, averaged over the attentions, and
// divided by the number of target tokens as the NLL is.
#pragma once

#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/nn/head_geometry.h"

namespace mh {

enum class Disagreement {
  kNone,
  kSubspace,   // cos(V_i, V_j): the values of a row
  kPositions,  // |A_i * A_j|: the weights of a query; takes the composed path, as the fused kernel keeps none
  kOutput,     // cos(Att_i, Att_j): the outputs before W^O
};

inline constexpr EnumNames<Disagreement> kDisagreementNames = {{"none", Disagreement::kNone},
                                                               {"subspace", Disagreement::kSubspace},
                                                               {"positions", Disagreement::kPositions},
                                                               {"output", Disagreement::kOutput}};

/// Where the attentions of a model put their similarities: from each attention one Var [1, 1], the sum over
/// rows of (1 / h^2) sum_ij.
struct HeadSimilaritySums {
  Disagreement form = Disagreement::kSubspace;
  std::vector<Var> sums = {};
};

}  // namespace mh
