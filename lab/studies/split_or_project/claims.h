// 000: "split or duplicated?"
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::split_or_project {

/// 000.1 to 000.5.
std::span<const AlgebraCheck> algebra();
Claim cost(const AlgebraCase& a);  // 000.3
/// 000.6 to 000.8.
std::span<const TrainedCheck> trained();

}  // namespace mh::split_or_project
