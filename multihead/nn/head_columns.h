// Which numbers of a row each head reads, where it does not read all of them.
#pragma once

#include <cstdint>

#include "multihead/autograd/head_affine.h"

namespace mh {

/// The columns [i d / h, (i + 1) d / h) of every head i, of sizes that differ by one when h does not divide
/// d.
HeadColumns slice_columns(int heads, int d_model);
/// Slices of a random permutation of the columns: disjoint, and together the row.
HeadColumns permuted_slices(int heads, int d_model, uint64_t seed);
/// `size` columns for each head, drawn without repetition, heads independently: they may overlap.
/// Throws UsageError unless 1 <= size <= d_model, as spread_segments does.
HeadColumns random_columns(int heads, int size, int d_model, uint64_t seed);
/// Contiguous segments of `size`, spread evenly: neighbours overlap when heads * size > d_model.
HeadColumns spread_segments(int heads, int size, int d_model);

}  // namespace mh
