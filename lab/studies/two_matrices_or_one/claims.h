// 002: "why W^Q and W^K and not one W?"
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::two_matrices_or_one {

std::span<const AlgebraCheck> algebra();
/// 002.2 and how much rank is needed, 002.3's times, 002.4 and the training of 002.5.
std::span<const TrainedCheck> trained();

}  // namespace mh::two_matrices_or_one
