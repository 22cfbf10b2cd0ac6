// Chooses the columns of a row that each head reads, for heads that do not read the whole row.
#pragma once

#include <cstdint>
#include <vector>

namespace mh {

/// The columns that each head reads: one list for each head, rising, not empty.
using HeadColumns = std::vector<std::vector<int32_t>>;

/// Slices: head i reads columns [i d / h, (i + 1) d / h). The sizes differ by one when h does not divide d.
HeadColumns slice_columns(int heads, int d_model);
/// Slices of a random permutation of the columns: disjoint, and together the whole row.
HeadColumns permuted_slices(int heads, int d_model, uint64_t seed);
/// `size` random columns for each head, without repetition within a head; heads may overlap. Throws
/// UsageError unless 1 <= size <= d_model; so does spread_segments().
HeadColumns random_columns(int heads, int size, int d_model, uint64_t seed);
/// Contiguous segments of `size` columns, spread evenly; neighbours overlap when heads * size > d_model.
HeadColumns spread_segments(int heads, int size, int d_model);

}  // namespace mh
