// 001: diverse heads.
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh {
class EncoderDecoder;
}

namespace mh::diversity {

std::span<const AlgebraCheck> algebra();
/// 001.1 to 001.5.
std::span<const TrainedCheck> trained();

// Those that are files of their own:
Claim starts_trained(ArmRunner& runner);  // 001.2
Claim regularisers(ArmRunner& runner);    // 001.3
Claim segments(ArmRunner& runner);        // 001.4
Claim ensemble(ArmRunner& runner);        // 001.5

/// How evenly a head's matrices read the row: (sum of squared row norms)^2 / (d * sum of their squares), the mean over
/// heads of W^Q, W^K and W^V; 1 when all rows weigh the same, k / d when only k of d do.
double evenness(EncoderDecoder& model, int heads);

}  // namespace mh::diversity
