// How far the rows of a site are from those that transformers computes, relative to their size:
//
//   max_i |a_i - b_i| / max(|b_i|, median_j |b_j|)
//
// with the rows a_i here and b_i there, and Euclidean norms, so that no basis counts more than another. A row that is much larger
// than the others, as those of first tokens often are, hides no other row; one that is nearly 0 is measured by the usual row.
#pragma once

#include <cstddef>

#include "multihead/base/matrix_view.h"
#include "multihead/check/site_rows.h"

namespace mh {

struct RowDifference {
  double difference = 0;
  size_t row = 0;  // with the largest
};

/// Columns of b behind those of a row of a count for nothing. REQUIRES: as many rows, and b has at least the columns of each.
RowDifference row_difference(const CheckedRows& a, ConstMatrixView b);

}  // namespace mh
