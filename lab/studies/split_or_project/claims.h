// 000: "split or duplicated?"
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::split_or_project {

std::span<const AlgebraCheck> algebra();
/// 000.6 and 000.7.
std::span<const TrainedCheck> trained();

}  // namespace mh::split_or_project
