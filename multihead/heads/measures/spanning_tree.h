// The maximum spanning tree of a sentence: the tree of heads whose edges have the largest sum of scores.
#pragma once

#include <span>
#include <vector>

#include "multihead/tensor/linear_algebra.h"

namespace mh {

/// scores(i, j): how well word i fits as the head of word j; the diagonal and the root's column count for nothing. Returns the head
/// of each word, -1 for the root, which is given (Chu and Liu 1965, Edmonds 1967; time n^3). Throws UsageError on scores that are
/// not finite and on a root that is no word.
std::vector<int> maximum_spanning_tree(const DoubleMatrix& scores, int root);

}  // namespace mh
