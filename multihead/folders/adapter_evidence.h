// Whether weights have an adapter already. Weights W to which D = s B A was added, as merge_and_unload() of peft leaves them, look
// like others; but numbers tell. For weights that were not changed along D,
//
//   c = <W, D> / <D, D>
//
// is near 0, and for those to which D was added it is near 1. Where the numbers of W know nothing of D, c scatters by
// t = rms(W) / |D|. So over all modules
//
//   z_0 = root of the mean of (c / t)^2        z_1 = root of the mean of ((c - 1) / t)^2
//
// and W is without the adapter where z_1 > 4 and z_1 > 2 z_0, has it where z_0 > 4 and z_0 > 2 z_1, and otherwise the numbers
// do not show which: D is too small, or trained along W. A sample of the rows is enough.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "multihead/folders/low_rank_sum.h"

namespace mh {

using LowRankSums = std::map<std::string, std::shared_ptr<const LowRankSum>>;  // by the names of tensors

/// Empty: the numbers do not show it. False where all D are 0, since then it does not matter.
std::optional<bool> has_product_already(const LowRankSums& sums);

}  // namespace mh
