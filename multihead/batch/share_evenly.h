// Shares examples among workers so that all have nearly equally much to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mh {

/// Returns a list for each of `parts` workers: all numbers below costs.size(), each in one list, rising. The
/// dearest goes first, each to whoever has the least so far (Graham 1969: the dearest list costs at most 4/3 of
/// the best possible). A pure function of its arguments.
std::vector<std::vector<int64_t>> share_evenly(std::span<const double> costs, size_t parts);

}  // namespace mh
