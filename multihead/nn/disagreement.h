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
  // The sums of two or all of them, as in Li et al.'s table of combinations.
  kSubspaceAndPositions,
  kSubspaceAndOutput,
  kPositionsAndOutput,
  kAll,
};

inline constexpr EnumNames<Disagreement> kDisagreementNames = {
    {"none", Disagreement::kNone},
    {"subspace", Disagreement::kSubspace},
    {"positions", Disagreement::kPositions},
    {"output", Disagreement::kOutput},
    {"subspace+positions", Disagreement::kSubspaceAndPositions},
    {"subspace+output", Disagreement::kSubspaceAndOutput},
    {"positions+output", Disagreement::kPositionsAndOutput},
    {"all", Disagreement::kAll}};

/// Whether a regulariser has this part, one of the first three.
constexpr bool has_part(Disagreement whole, Disagreement part) {
  using enum Disagreement;
  switch (part) {
    case kSubspace:
      return whole == part || whole == kSubspaceAndPositions || whole == kSubspaceAndOutput || whole == kAll;
    case kPositions:
      return whole == part || whole == kSubspaceAndPositions || whole == kPositionsAndOutput || whole == kAll;
    case kOutput:
      return whole == part || whole == kSubspaceAndOutput || whole == kPositionsAndOutput || whole == kAll;
    default:
      return false;
  }
}
/// How many parts it is the sum of.
constexpr int count_parts(Disagreement whole) {
  return int{has_part(whole, Disagreement::kSubspace)} + int{has_part(whole, Disagreement::kPositions)} +
         int{has_part(whole, Disagreement::kOutput)};
}

/// Where the attentions of a model put their similarities: from each attention, for each part of the form, one Var
/// [1, 1], the sum over rows of (1 / h^2) sum_ij.
struct HeadSimilaritySums {
  Disagreement form = Disagreement::kSubspace;
  std::vector<Var> sums = {};
};

}  // namespace mh
