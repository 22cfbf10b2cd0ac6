// 000: "split or duplicated?"
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::split_or_project {

std::span<const AlgebraCheck> algebra();
/// 000.6 to 000.8.
std::span<const TrainedCheck> trained();
Claim fixed_head_size(ArmRunner& runner);  // 000.8

}  // namespace mh::split_or_project
